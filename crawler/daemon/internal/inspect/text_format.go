package inspect

import (
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// DelayText formats a delay, rounded to milliseconds, or to seconds from 10 s. It returns "-" for 0.
func DelayText(m api.Milliseconds) string {
	d := time.Duration(m)
	switch {
	case d == 0:
		return "-"
	case d >= 10*time.Second:
		return project.Duration(d.Round(time.Second)).String()
	}
	return project.Duration(d.Round(time.Millisecond)).String()
}

// PrefixIfSet returns prefix and text, or "" if text is empty.
func PrefixIfSet(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// FormatTime formats t in UTC, to the second.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// RuleText describes the rule that decided v, with its line and group.
func RuleText(v robots.Verdict) string {
	return fmt.Sprintf("%s (line %d, group %s)", plaintext.ReplaceControlChars(v.Rule), v.Line,
		plaintext.ReplaceControlChars(v.Group))
}

// StateNames lists the names of the states of a URL in the API and in commands.
var StateNames = [...]string{
	storage.StateQueued: "queued", storage.StateAwaitingRevisit: "resting", storage.StateParked: "parked",
}

// RefusalText returns why URLs are parked.
func RefusalText(r api.RefusalSummary) string {
	if r.RefusedBy == ParkedByScope {
		return "out of scope: " + r.Rule
	}
	return r.Rule
}

// RuleLocationText returns the file and line of the rule, or "" if no file has the rule.
func RuleLocationText(r api.RefusalSummary) string {
	switch {
	case r.RuleFileURL == "":
		return ""
	case r.RuleLine == 0:
		return r.RuleFileURL
	}
	return fmt.Sprintf("%s (line %d)", r.RuleFileURL, r.RuleLine)
}
