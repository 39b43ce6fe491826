#!/bin/sh
# Plays the main job with the demo model in a throwaway home and workspace: build a capability, reuse it from
# another process, show what was kept. Needs bin/tendril, and Deno as DENO_PATH.
set -eu
cd "$(dirname "$0")/.."
bin="$PWD/bin/tendril"
place=$(mktemp -d "${TMPDIR:-/tmp}/tendril-demo.XXXXXX")
mkdir "$place/home" "$place/workspace"
cp examples/workspace/* "$place/workspace/"
export TENDRIL_HOME="$place/home"

show() {
  printf '\n$ tendril'
  for word in "$@"; do case $word in *' '*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac; done
  printf '\n'
  "$bin" "$@" 2>&1
}

cd "$place/workspace"
"$bin" config set workspace "$place/workspace" >/dev/null
show run --model demo "How many words are in my text files?"
printf 'wrote one more line\n' >>reading.txt
printf '\nA line was added to reading.txt. The same question, in a new process:\n'
show run --model demo "How many words are in my text files?"
printf '\nThe gate refuses what does not type-check; the model mends it:\n'
show run --model demo "What did I spend per category?"
show capability list

cat <<END

Everything is in $place (yours to look at and to delete):
  workspace/tools/             the capabilities, as files
  home/                        settings and the database
To try more:
  TENDRIL_HOME=$place/home DENO_PATH=$DENO_PATH $bin run --model demo "Which tasks are still open?"
The real thing, with a model of yours:
  $bin setup && $bin run "how many words are in my notes?"
END
