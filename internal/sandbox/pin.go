package sandbox

import (
	"fmt"
	"runtime"
)

// pin names the npm package that holds Deno for one platform, and the sha512
// of its tarball in the form of npm's `dist.integrity`.
type pin struct {
	name      string
	integrity string
}

// pinFor returns the pin of [TestedVersion] for a platform.
func pinFor(goos, goarch string) (pin, error) {
	pins := map[string]pin{
		"linux/amd64":   {"@deno/linux-x64-glibc", "sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ=="},
		"linux/arm64":   {"@deno/linux-arm64-glibc", "sha512-poqhoH9B3nYloigEMPT5t8HY+wBeiuea1An5Q7fqgJzP0SYmWsoS/oUnWO/pEiA4ofzIBy1Elt/in58xKtxEoQ=="},
		"darwin/amd64":  {"@deno/darwin-x64", "sha512-tPi3CWPRdjW1MaWlvWjORE7Ass5SADdWdj1BF1Q1PEdzi+5u/mC5YhmZzniMiPr81PpaFeqjXaLAsfb8lFsZ0Q=="},
		"darwin/arm64":  {"@deno/darwin-arm64", "sha512-V8uO1Aolrl/yvdMb5lOtgtigs8YuZBjrOrgviVMiYkQ0swymFfzkae1wZak4Xi24t7vf7d/eiMb/7ryjjVm+tg=="},
		"windows/amd64": {"@deno/win32-x64", "sha512-qRGnmVz/Ea6UWPht/S3xFRK17UZ/ls38DSVfgGB17fpASLxPkksqzWUI/BzL9YYoOknYzfc94mySGyInZu/JXw=="},
		"windows/arm64": {"@deno/win32-arm64", "sha512-iHSHs89g2Uy6k0bGHmXkgzTIW8WXImYPpvqRRO/zNsK1/N79PcjvAth1TuQatuIALcLdocstPs/PAYtndbfr0A=="},
	}
	found, ok := pins[goos+"/"+goarch]
	if !ok {
		return pin{}, fmt.Errorf("there is no pinned deno for %s/%s; install deno %s or later and name it in DENO_PATH", goos, goarch, MinVersion)
	}
	return found, nil
}

func ownPin() (pin, error) { return pinFor(runtime.GOOS, runtime.GOARCH) }
