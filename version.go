package decorum

import (
	"runtime/debug"
	"strings"
)

// ModulePath is the path of decorum's module.
const ModulePath = "github.com/decorum-crawler/decorum"

// Version returns the module version of decorum in this program, without the leading v. That of a
// command built from a git work tree is its tag, or a pseudo-version if the commit has no tag or there are
// changes. Version returns "devel" if the build recorded no version, as with -buildvcs=false, or if go.mod
// replaces decorum by a directory.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return versionIn(info)
}

// versionIn is Version for the program with the build information info.
func versionIn(info *debug.BuildInfo) string {
	version := info.Main.Version // of the decorum command; other programs link decorum as a dependency
	for _, dep := range info.Deps {
		if dep.Path != ModulePath {
			continue
		}
		version = dep.Version
		if dep.Replace != nil { // the required version, such as v0.0.0, is not the one that is linked
			version = dep.Replace.Version
		}
	}
	version = strings.TrimPrefix(version, "v")
	if version == "" || version == "(devel)" {
		return "devel"
	}
	return version
}
