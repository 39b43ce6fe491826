package capability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tendril-agent/tendril/internal/schema"
)

// The sizes that the gate allows.
const (
	maxSource     = 256 << 10
	maxSentence   = 500 // characters of capability, a trigger, a suppression
	maxMoments    = 20  // triggers, suppressions
	maxParameters = 64 << 10
	maxExamples   = 20
	maxExample    = 16 << 10
	maxReason     = 2000
	maxHosts      = 50
)

var sentenceBreak = regexp.MustCompile(`[.!?]\s+\p{Lu}`)

// checkShape judges what can be judged by looking. It returns warnings, and
// every fault at once. A lenient check is for workspaces that are older than
// these rules: there only what cannot work is a fault.
func checkShape(def *Definition, source []byte, lenient bool) (warnings, faults []string) {
	faults = checkSource(source)
	soft := checkTexts(def)
	switch n := len(def.Triggers); {
	case n == 0:
		soft = append(soft, "definition.triggers is empty; give 2 to 5 moments in which it applies")
	case n < 2 || n > 5:
		warnings = append(warnings, count(n, "trigger")+"; 2 to 5 work best")
	}
	if sentenceBreak.MatchString(def.Capability) {
		warnings = append(warnings, "definition.capability has more than one sentence; one says what it does")
	}
	if len(def.Parameters) > 0 {
		soft = append(soft, checkParameters(def.Parameters)...)
	}
	if lenient {
		return append(warnings, soft...), faults
	}
	if fault := checkNewName(def.Name); fault != "" {
		soft = append([]string{fault}, soft...)
	}
	return warnings, append(soft, faults...)
}

func checkSource(source []byte) []string {
	switch {
	case len(bytes.TrimSpace(source)) == 0:
		return []string{"code is blank"}
	case bytes.HasPrefix(bytes.TrimSpace(source), []byte("```")):
		return []string{"code begins with a Markdown fence; send the module alone"}
	case len(source) > maxSource:
		return []string{fmt.Sprintf("code has %d bytes; at most %d are allowed", len(source), maxSource)}
	case !utf8.Valid(source):
		return []string{"code is not valid UTF-8"}
	case bytes.IndexByte(source, 0) >= 0:
		line, column := position(string(source), bytes.IndexByte(source, 0))
		return []string{fmt.Sprintf(`code holds a NUL character at line %d, column %d; write it as "\0"`, line, column)}
	}
	return nil
}

func checkTexts(def *Definition) []string {
	var faults []string
	check := func(path, text string) {
		if fault := checkSentence(text); fault != "" {
			faults = append(faults, path+" "+fault)
		}
	}
	check("definition.capability", def.Capability)
	moments := func(path string, list []string) {
		if len(list) > maxMoments {
			faults = append(faults, fmt.Sprintf("%s has %d entries; at most %d are allowed", path, len(list), maxMoments))
			return
		}
		for i, text := range list {
			check(fmt.Sprintf("%s[%d]", path, i), text)
		}
	}
	moments("definition.triggers", def.Triggers)
	moments("definition.suppression", def.Suppression)
	if len(def.Reason) > maxReason {
		faults = append(faults, fmt.Sprintf("definition.reason has %d bytes; at most %d are allowed", len(def.Reason), maxReason))
	}
	if def.Replaces != "" && !validName(def.Replaces) {
		faults = append(faults, "definition.replaces is not the name of a capability")
	}
	return append(faults, checkExamples(def.Examples)...)
}

func checkSentence(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "is blank"
	case utf8.RuneCountInString(text) > maxSentence:
		return fmt.Sprintf("has %d characters; at most %d are allowed", utf8.RuneCountInString(text), maxSentence)
	case strings.ContainsFunc(text, unicode.IsControl):
		return "holds a line break or another control character; it is one line of text"
	}
	return ""
}

func checkExamples(examples []Example) []string {
	if len(examples) > maxExamples {
		return []string{fmt.Sprintf("definition.examples has %d entries; at most %d are allowed", len(examples), maxExamples)}
	}
	var faults []string
	for i, e := range examples {
		if n := len(e.Args) + len(e.Expect); n > maxExample {
			faults = append(faults, fmt.Sprintf("definition.examples[%d] has %d bytes; at most %d are allowed", i, n, maxExample))
		}
	}
	return faults
}

func checkParameters(raw json.RawMessage) []string {
	if len(raw) > maxParameters {
		return []string{fmt.Sprintf("definition.parameters has %d bytes; at most %d are allowed", len(raw), maxParameters)}
	}
	if _, err := schema.Compile(raw); err != nil {
		return []string{"definition.parameters: " + err.Error()}
	}
	return nil
}
