package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"
)

// apiRules say what projects from the API may do.
type apiRules struct {
	outputRoot string // projects write below it; empty: the daemon's directory
	filesRoot  string // projects read below it; empty: the folder of project files
	private    bool   // projects may reach into private networks
}

func (r *apiRules) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.outputRoot, "output-root", "",
		"projects that come by the API write below `DIR` only, beside their own directory in --data")
	fs.StringVar(&r.filesRoot, "files-root", "",
		"projects that come by the API read files below `DIR` only (default: the folder of project files)")
	fs.BoolVar(&r.private, "api-private-networks", false,
		"let projects that come by the API set fetch.allow_private, fetch.connect_to, fetch.proxy and store.redis")
}

// resolve returns the rules with absolute directories, which must exist.
func (r apiRules) resolve(data, folder string) (apiRules, error) {
	for _, root := range []struct {
		flag  string
		path  *string
		other string
	}{{"--output-root", &r.outputRoot, data}, {"--files-root", &r.filesRoot, folder}} {
		if *root.path == "" {
			*root.path = root.other
			continue
		}
		full, err := filepath.Abs(*root.path)
		if err != nil {
			return r, usage("%s: %w", root.flag, err)
		}
		if info, err := os.Stat(full); err != nil || !info.IsDir() {
			return r, usage("%s: %s is not a directory: create it, or name another", root.flag, full)
		}
		*root.path = full
	}
	return r, nil
}

// confinementOf returns the confinement of a project; nil unless the project came by
// the API.
func (s *supervisor) confinementOf(project string, byAPI bool) *confinement {
	if !byAPI {
		return nil
	}
	return &confinement{
		output: s.api.outputRoot, files: s.api.filesRoot,
		home: string(s.home(project)), data: string(s.data), folder: s.folder,
		private: s.api.private, known: func(path string) bool { return s.wishes.knowsOutput(project, path) },
		note: func(path string) error { return s.wishes.addOutput(project, path) },
	}
}

// tooMuch returns the settings of a project that its confinement does not allow.
func (s *supervisor) tooMuch(name string, p Project, c *confinement) *fault {
	if c == nil {
		return nil
	}
	if f := p.eachPath(func(f pathField, field string, path *string) *fault {
		if f.kind == stateDirectory || c.admits(f.kind, s.pathOf(name, f.kind, *path)) {
			return nil
		}
		dir, flag := c.output, "--output-root"
		if f.kind == inputFile {
			dir, flag = c.files, "--files-root"
		}
		return faulty(field, "%q is outside of %s, which projects that come by the API are held to; "+
			"name a place below it, start the daemon with another %s, or put the project file into %s by hand",
			*path, dir, flag, c.folder)
	}); f != nil || c.private {
		return f
	}
	for _, f := range []struct {
		field string
		isSet bool
	}{
		{"fetch.allow_private", p.Fetch.AllowPrivate},
		{"fetch.connect_to", len(p.Fetch.ConnectTo) > 0},
		{"fetch.proxy", p.Fetch.Proxy != ""},
		{"store.redis.addresses", p.Store.Redis.isUsed()},
	} {
		if f.isSet {
			return faulty(f.field, "may reach into private networks, which a project that comes by the API may not; "+
				"leave it out, start the daemon with --api-private-networks, or put the project file into %s by hand", c.folder)
		}
	}
	return nil
}

// apiMark begins the copy, in the project's directory, of a project that came by the
// API.
const apiMark = "# This project came by the API of a daemon.\n"

// An apiProjectRecord is what daemon.json records of a project that came by the API.
type apiProjectRecord struct {
	// Files are the SHA-256 of the project file as the API wrote it last, and, during a
	// replacement, also of the previous one. A file with another hash is the
	// operator's.
	Files []string `json:"files"`
	// Outputs are the files of lines and directories of WARC files that the project has
	// begun.
	Outputs []string `json:"outputs,omitempty"`
}

// sumOf returns the SHA-256 of a text, in hexadecimal.
func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// apiWrote reports whether the file of a project still has the text that the API wrote.
func (w *wishes) apiWrote(project string, text []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.told.API[project].Files, sumOf(text))
}

// addAPIFile records that the API is about to write the file of a project.
func (w *wishes) addAPIFile(project, sum string) error {
	return w.changeAPI(project, func(r *apiProjectRecord) { r.Files = append(otherThan(r.Files, sum), sum) })
}

// keepAPIFile records that the API has written the file of a project, and forgets other
// hashes.
func (w *wishes) keepAPIFile(project, sum string) error {
	return w.changeAPI(project, func(r *apiProjectRecord) { r.Files = []string{sum} })
}

// knowsOutput reports whether a project that came by the API has begun a file of lines.
func (w *wishes) knowsOutput(project, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.told.API[project].Outputs, path)
}

// addOutput records that a project from the API begins a file of lines. It forgets the
// oldest beyond maxKnownOutputs.
func (w *wishes) addOutput(project, path string) error {
	return w.changeAPI(project, func(r *apiProjectRecord) {
		r.Outputs = append(otherThan(r.Outputs, path), path)
		r.Outputs = r.Outputs[max(0, len(r.Outputs)-maxKnownOutputs):]
	})
}

// maxKnownOutputs is how many files of lines are recorded for a project. It is a
// constant: a project has one at a time, and begins a new one only when its project
// file names another.
const maxKnownOutputs = 100

func (w *wishes) changeAPI(project string, change func(*apiProjectRecord)) error {
	return w.change(func(t *daemonState) {
		if t.API == nil {
			t.API = map[string]apiProjectRecord{}
		}
		r := t.API[project]
		change(&r)
		t.API[project] = r
	})
}

// otherThan returns a copy of a list without an item.
func otherThan(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
