package server

import (
	"github.com/decorum-crawler/decorum/crawler/project"
)

// A DurationFlag is a pflag.Value for a duration in the syntax of project files.
type DurationFlag struct{ *project.Duration }

// Set implements pflag.Value.
func (t DurationFlag) Set(text string) error { return t.UnmarshalText([]byte(text)) }

// String implements pflag.Value. It returns "" for 0, so that the help shows no default.
func (t DurationFlag) String() string {
	if t.Duration == nil || *t.Duration == 0 {
		return ""
	}
	return t.Duration.String()
}

// Type implements pflag.Value.
func (t DurationFlag) Type() string { return "TIME" }
