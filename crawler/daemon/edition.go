package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// An edition is a project file that makes sense, as it was read.
type edition struct {
	project  Project      // with the paths of the daemon
	confined *confinement // of the files that the project names; nil: the file did not come by the API
	roots    []decorum.URL
	keys     []*botauth.Key // keys that sign the project's requests, now or later
	loaded   time.Time
}

// defaultStore is the only store.path that a project of a daemon may have: the
// daemon says where its state is.
var defaultStore = DefaultProject().Store.Path

// edit parses the text of a project file and validates it. byAPI says that the text
// came by the API.
func (s *supervisor) edit(name string, text []byte, byAPI bool) (*edition, error) {
	d, err := parseDraft(s.projectFile(name), text)
	if err != nil {
		return nil, err
	}
	c := s.confinementOf(name, byAPI)
	for _, f := range []*fault{
		s.unfit(name, &d.Project), s.tooMuch(name, d.Project, c), s.app.handlers.unknown(d.Handler),
	} {
		if f != nil {
			return nil, d.blame(*f)
		}
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	ed, err := s.publish(name, d.Project, c)
	if err == nil && ed.project.Output.JSONL != "" {
		if other := s.writer(ed.project.Output.JSONL); other != "" && other != name {
			return nil, d.blame(*faulty("output.jsonl", "%q is written by project %s: name another file",
				ed.project.Output.JSONL, other))
		}
	}
	return ed, err
}

// writer returns the project that writes an output; empty if none does.
func (s *supervisor) writer(output string) string {
	for _, r := range s.all() {
		if ed := r.edition(); ed != nil && ed.project.Output.JSONL == output {
			return r.name
		}
	}
	return ""
}

// publish makes an edition of a project that has been checked.
func (s *supervisor) publish(name string, p Project, c *confinement) (*edition, error) {
	p.Name = name
	s.settle(&p)
	roots, err := p.roots(c)
	if err != nil {
		return nil, err
	}
	keys, err := p.Agent.Signature.keys(c)
	if err != nil {
		return nil, err
	}
	return &edition{project: p, confined: c, roots: roots, keys: keys, loaded: time.Now()}, nil
}

// unfit returns what a daemon cannot do for a project, and a command could.
func (s *supervisor) unfit(name string, p *Project) *fault {
	switch {
	case p.Name != "" && p.Name != name:
		return faulty("project", "%q is not the name of its file: expected %s", p.Name, name)
	case p.Store.Path != defaultStore:
		return faulty("store.path", "%q cannot be set in a daemon, which keeps the state of all projects under --data; leave it out", p.Store.Path)
	case p.Output.JSONL == "-":
		return faulty("output.jsonl", `"-" cannot be used in a daemon, whose standard output all projects would share; name a file`)
	case s.trespasses(name, p.Output.JSONL):
		return faulty("output.jsonl", elsewhere, p.Output.JSONL)
	case s.trespasses(name, p.Output.WARC):
		return faulty("output.warc", elsewhere, p.Output.WARC)
	}
	return nil
}

// elsewhere is what is wrong with an output that trespasses.
const elsewhere = "%q is where the daemon keeps its own files, or those of other projects; name a place in the project's directory (a/b.jsonl), or outside of --data and --projects"

// trespasses reports whether what a project writes would be a file of its state, or
// in the daemon's directory, but not in the project's, or among the project files.
func (s *supervisor) trespasses(name, out string) bool {
	home := s.home(name)
	if out != "" && !filepath.IsAbs(out) {
		out = home.path(out)
	}
	return home.owns(out) || out != "" && !within(out, string(home)) && (within(out, string(s.data)) || filepath.Dir(out) == s.folder)
}

// within reports whether a file is in a directory, or is it.
func within(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// settle makes the paths of a project absolute: what it writes is in its
// directory, what it reads is beside its file.
func (s *supervisor) settle(p *Project) {
	p.Store.Path = string(s.home(p.Name))
	p.eachPath(func(f pathField, _ string, path *string) *fault {
		if f.kind != stateDirectory {
			*path = s.pathOf(p.Name, f.kind, *path)
		}
		return nil
	})
}

// pathOf returns the absolute path of a name in a project.
func (s *supervisor) pathOf(project string, use pathKind, path string) string {
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case use == inputFile:
		return filepath.Join(s.folder, path)
	}
	return s.home(project).path(path)
}

// lastGood returns the edition that a project followed last, in this process or
// an earlier one; nil if there is none.
func (s *supervisor) lastGood(name string) *edition {
	d, err := readDraft(s.home(name).path(projectFile))
	if err != nil || d.check() != nil || s.app.handlers.unknown(d.Handler) != nil {
		return nil
	}
	c := s.confinementOf(name, strings.HasPrefix(d.text, apiMark))
	if s.tooMuch(name, d.Project, c) != nil {
		return nil
	}
	ed, err := s.publish(name, d.Project, c)
	if err != nil {
		return nil
	}
	return ed
}

// stampOf returns a digest of the project file's text, of byAPI, and of the present
// seed and key files that the project names. An equal stamp means that they are
// unchanged.
func stampOf(text []byte, byAPI bool, ed *edition) string {
	stamp := fmt.Sprint(sumOf(text), " ", byAPI)
	if ed == nil {
		return stamp
	}
	for _, name := range slices.Concat(ed.project.SeedFiles, ed.project.Agent.Signature.Keys) {
		if info, err := os.Stat(name); err == nil {
			stamp += fmt.Sprint(" ", info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp
}
