package supervisor

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// APIProjectRestrictions say what projects from the API may do.
type APIProjectRestrictions struct {
	OutputRoot   string // projects write below it; empty: the daemon's directory
	InputRoot    string // projects read below it; empty: the folder of project files
	AllowPrivate bool   // projects may reach into private networks
}

func (r *APIProjectRestrictions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.OutputRoot, "output-root", "",
		"projects that come by the API write below `DIR` only, beside their own directory in --data")
	fs.StringVar(&r.InputRoot, "files-root", "",
		"projects that come by the API read files below `DIR` only (default: the folder of project files)")
	fs.BoolVar(&r.AllowPrivate, "api-private-networks", false,
		"let projects that come by the API set fetch.allow_private, fetch.connect_to, fetch.proxy and store.redis")
}

// withAbsoluteDirs returns the rules with absolute directories, which must exist.
func (r APIProjectRestrictions) withAbsoluteDirs(dataDir, projectFilesDir string) (APIProjectRestrictions, error) {
	for _, root := range []struct {
		flag     string
		path     *string
		fallback string
	}{{"--output-root", &r.OutputRoot, dataDir}, {"--files-root", &r.InputRoot, projectFilesDir}} {
		if *root.path == "" {
			*root.path = root.fallback
			continue
		}
		full, err := filepath.Abs(*root.path)
		if err != nil {
			return r, usage.Errorf("%s: %w", root.flag, err)
		}
		if info, err := os.Stat(full); err != nil || !info.IsDir() {
			return r, usage.Errorf("%s: %s is not a directory: create it, or name another", root.flag, full)
		}
		*root.path = full
	}
	return r, nil
}

// confinementOf returns the confinement of a project; nil unless the project came by
// the API.
func (l *projectLoader) confinementOf(project string, byAPI bool) *confine.ProjectAccess {
	if !byAPI {
		return nil
	}
	return &confine.ProjectAccess{
		OutputRoot: l.apiRestrictions.OutputRoot, InputRoot: l.apiRestrictions.InputRoot,
		ProjectDir: string(l.projectStateDir(project)), ProtectedDataDir: string(l.DataDir), ProjectFilesDir: l.ProjectFilesDir,
		AllowPrivate: l.apiRestrictions.AllowPrivate, IsKnownOutput: func(path string) bool { return l.stateStore.isKnownOutputFile(project, path) },
		RecordOutput: func(path string) error { return l.stateStore.addKnownOutputFile(project, path) },
	}
}

// checkProjectConfinement returns a setting of a project that its confinement does not allow; nil if
// there is none.
func (l *projectLoader) checkProjectConfinement(name string, p project.Project, c *confine.ProjectAccess) *project.FieldProblem {
	if c == nil {
		return nil
	}
	// Its files must be in the directories of projects from the API.
	if f := p.ForEachFilePath(func(f project.FilePathField, field string, path *string) *project.FieldProblem {
		if f.Use == project.StateDirectory {
			return nil
		}
		allows, dir, flag := c.AllowsOutput, c.OutputRoot, "--output-root"
		if f.Use == project.InputFile {
			allows, dir, flag = c.AllowsInput, c.InputRoot, "--files-root"
		}
		if allows(l.absolutePath(name, f.Use, *path)) {
			return nil
		}
		return project.NewFieldProblem(field, "%q is outside of %s, which projects that come by the API are held to; "+
			"name a place below it, start the daemon with another %s, or put the project file into %s by hand",
			*path, dir, flag, c.ProjectFilesDir)
	}); f != nil || c.AllowPrivate {
		return f
	}
	// It must not reach into private networks.
	for _, f := range []struct {
		field string
		isSet bool
	}{
		{"fetch.allow_private", p.Fetch.AllowPrivate},
		{"fetch.connect_to", len(p.Fetch.ConnectToRules) > 0},
		{"fetch.proxy", p.Fetch.Proxy != ""},
		{"store.redis.addresses", p.Store.Redis.IsUsed()},
	} {
		if f.isSet {
			return project.NewFieldProblem(f.field, "may reach into private networks, which a project that comes by the API may not; "+
				"leave it out, start the daemon with --api-private-networks, or put the project file into %s by hand", c.ProjectFilesDir)
		}
	}
	return nil
}

// An apiProjectOwnedFiles is what daemon.json records of a project that came by the API.
type apiProjectOwnedFiles struct {
	// FileHashes are the SHA-256 of the project file as the API wrote it last, and, during a
	// replacement, also of the previous one. A file with another hash is the
	// operator's.
	FileHashes []string `json:"files"`
	// OutputPaths are the files of lines and directories of WARC files that the project has
	// begun.
	OutputPaths []string `json:"outputs,omitempty"`
}

// sha256Hex returns the SHA-256 of a text, in hexadecimal.
func sha256Hex(text []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// isProjectFileFromAPI reports whether the file of a project still has the text that the API wrote.
func (w *daemonStateStore) isProjectFileFromAPI(project string, text []byte) bool {
	return slices.Contains(w.current().APIProjects[project].FileHashes, sha256Hex(text))
}

// addAPIProjectFileHash records that the API is about to write the file of a project.
func (w *daemonStateStore) addAPIProjectFileHash(project, sum string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectOwnedFiles) { r.FileHashes = append(withoutItem(r.FileHashes, sum), sum) })
}

// setAPIProjectFileHash records that the API has written the file of a project, and forgets other
// hashes.
func (w *daemonStateStore) setAPIProjectFileHash(project, sum string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectOwnedFiles) { r.FileHashes = []string{sum} })
}

// isKnownOutputFile reports whether a project that came by the API has begun a file of lines.
func (w *daemonStateStore) isKnownOutputFile(project, path string) bool {
	return slices.Contains(w.current().APIProjects[project].OutputPaths, path)
}

// addKnownOutputFile records that a project from the API begins a file of lines. It forgets the
// oldest beyond maxKnownOutputs.
func (w *daemonStateStore) addKnownOutputFile(project, path string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectOwnedFiles) {
		r.OutputPaths = append(withoutItem(r.OutputPaths, path), path)
		r.OutputPaths = r.OutputPaths[max(0, len(r.OutputPaths)-maxKnownOutputs):]
	})
}

// maxKnownOutputs is how many files of lines are recorded for a project. It is a
// constant: a project has one at a time, and begins a new one only when its project
// file names another.
const maxKnownOutputs = 100

func (w *daemonStateStore) updateAPIProjectRecord(project string, change func(*apiProjectOwnedFiles)) error {
	return w.update(func(t *daemonState) {
		r := t.APIProjects[project]
		change(&r)
		t.APIProjects[project] = r
	})
}

// withoutItem returns a copy of a list without an item.
func withoutItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
