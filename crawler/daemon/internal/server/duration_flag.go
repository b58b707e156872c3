package server

import (
	"github.com/decorum-crawler/decorum/crawler/project"
)

// A DurationFlag is a flag of a duration as project files have them.
type DurationFlag struct{ *project.Duration }

// Set is part of pflag.Value.
func (t DurationFlag) Set(text string) error { return t.UnmarshalText([]byte(text)) }

// String is part of pflag.Value: no default is shown.
func (t DurationFlag) String() string {
	if t.Duration == nil || *t.Duration == 0 {
		return ""
	}
	return t.Duration.String()
}

// Type is part of pflag.Value.
func (t DurationFlag) Type() string { return "TIME" }
