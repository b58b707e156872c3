package decorum

import (
	"runtime/debug"
	"testing"
)

// TestVersionIn: a program that replaces decorum by a directory has the version devel, as a command built
// without a version, and not the version that its go.mod requires.
func TestVersionIn(t *testing.T) {
	linked := func(version string, replace *debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "example.org/bot", Version: "v9.9.9"},
			Deps: []*debug.Module{{Path: ModulePath, Version: version, Replace: replace}}}
	}
	for _, tt := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"the command at a tag", &debug.BuildInfo{Main: debug.Module{Path: ModulePath, Version: "v1.2.3"}}, "1.2.3"},
		{"the command without a version", &debug.BuildInfo{Main: debug.Module{Path: ModulePath, Version: "(devel)"}},
			"devel"},
		{"a dependency", linked("v1.2.3", nil), "1.2.3"},
		{"replaced by a directory", linked("v0.0.0", &debug.Module{Path: "../decorum"}), "devel"},
		{"replaced by a version",
			linked("v0.0.0", &debug.Module{Path: "example.org/fork", Version: "v1.3.0"}), "1.3.0"},
	} {
		if got := versionIn(tt.info); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
