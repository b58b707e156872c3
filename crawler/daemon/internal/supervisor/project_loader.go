package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// A loadedProject is a valid project file with the seeds and keys of the files that it names. It is
// not changed after newLoadedProject has returned it.
type loadedProject struct {
	project project.Project // its paths are absolute
	// pathConfinement limits the files that the project may name; nil: the operator wrote the project
	// file, which may name any.
	pathConfinement    *confine.ProjectAccess
	firstSeedPerOrigin []decorum.URL
	signingKeys        []*botauth.Key // the first signs requests; the key directory lists all
	loadedAt           time.Time
}

// A projectLoader reads and checks project files for a daemon.
type projectLoader struct {
	projectPaths
	apiRestrictions APIProjectRestrictions                     // for projects that came by the API
	checkHandler    func(handler string) *project.FieldProblem // reports a handler that the program lacks
	stateStore      *daemonStateStore                          // records the outputs that an API project has begun
	jsonlOwner      func(outputPath string) (project string)   // names the project that writes a file; "": none does
}

// defaultStorePath is the only store.path that a project of a daemon may have: the daemon chooses
// where the state is.
var defaultStorePath = project.Default().Store.Path

// parseAndValidateProject parses the text of a project file and validates it. A text that came by the
// API (byAPI) is held to the restrictions for such projects, too.
func (l *projectLoader) parseAndValidateProject(name string, text []byte, byAPI bool) (*loadedProject, error) {
	d, err := project.ParseUnchecked(l.projectFilePath(name), text)
	if err != nil {
		return nil, err
	}
	// A violation of the daemon's own rules hides an error of the same field that any program would report.
	c := l.confinementOf(name, byAPI)
	problems := slices.Concat(l.checkProjectForDaemon(name, &d.Project), l.checkProjectConfinement(name, d.Project, c))
	if err := d.Check(append(problems, l.checkHandler(d.Handler))...); err != nil {
		return nil, err
	}
	// Two projects must not write the same file.
	loaded, err := l.newLoadedProject(name, d.Project, c)
	if err == nil && loaded.project.Output.JSONL != "" {
		if other := l.jsonlOwner(loaded.project.Output.JSONL); other != "" && other != name {
			return nil, d.FieldError(*project.NewFieldProblem("output.jsonl",
				"%q is written by project %s: name another file", loaded.project.Output.JSONL, other))
		}
	}
	return loaded, err
}

// newLoadedProject returns a validated project with absolute paths, and with the seeds and keys of the
// files that it names.
func (l *projectLoader) newLoadedProject(name string, p project.Project,
	c *confine.ProjectAccess) (*loadedProject, error) {
	p.Name = name
	l.makePathsAbsolute(&p)
	seedPerOrigin, err := p.FirstSeedPerOrigin(c.OpenInput)
	if err != nil {
		return nil, err
	}
	keys, err := p.Agent.Signature.ReadKeys(c.OpenInput)
	if err != nil {
		return nil, err
	}
	return &loadedProject{project: p, pathConfinement: c, firstSeedPerOrigin: seedPerOrigin,
		signingKeys: keys, loadedAt: time.Now()}, nil
}

// checkProjectForDaemon returns the settings that a command accepts and a daemon does not.
func (l *projectLoader) checkProjectForDaemon(name string, p *project.Project) (problems []*project.FieldProblem) {
	add := func(isWrong bool, field, format string, value any) {
		if isWrong {
			problems = append(problems, project.NewFieldProblem(field, format, value))
		}
	}
	if p.Name != "" && p.Name != name {
		problems = append(problems,
			project.NewFieldProblem("project", "%q is not the name of its file: expected %s", p.Name, name))
	}
	add(p.Store.Path != defaultStorePath, "store.path", "%q cannot be set in a daemon, which keeps the state of all "+
		"projects under --data; leave it out", p.Store.Path)
	add(p.Output.JSONL == "-", "output.jsonl",
		"%q cannot be used in a daemon, whose standard output all projects would share; name a file", p.Output.JSONL)
	add(p.Output.JSONL != "-" && l.isForbiddenOutputPath(name, p.Output.JSONL), "output.jsonl", reservedPathText,
		p.Output.JSONL)
	add(l.isForbiddenOutputPath(name, p.Output.WARCDir), "output.warc", reservedPathText, p.Output.WARCDir)
	return problems
}

// reservedPathText is the error for an output in a directory of the daemon.
const reservedPathText = "%q is where the daemon keeps its own files, or those of other projects; " +
	"name a place in the project's directory (a/b.jsonl), or outside of --data and --projects"

// lastValidProject returns the project file that a project followed last, in this process or an
// earlier one, as SaveProject stored it. It returns nil if that file is missing or no longer valid.
func (l *projectLoader) lastValidProject(name string) *loadedProject {
	d, err := project.ReadFile(l.projectStateDir(name).Path(datadir.ProjectFile))
	if err != nil || d.Check() != nil || l.checkHandler(d.Handler) != nil {
		return nil
	}
	c := l.confinementOf(name, strings.HasPrefix(d.Text, datadir.APICreatedProjectHeader))
	if len(l.checkProjectConfinement(name, d.Project, c)) > 0 {
		return nil
	}
	loaded, _ := l.newLoadedProject(name, d.Project, c) // nil with an error
	return loaded
}

// projectFilesDigest returns a digest of the project file's text, of byAPI, and of the sizes and
// modification times of the seed and key files that loaded names and that exist. Equal digests mean
// that they are unchanged.
func projectFilesDigest(text []byte, byAPI bool, loaded *loadedProject) string {
	digest := fmt.Sprint(sha256Hex(text), " ", byAPI)
	if loaded == nil {
		return digest
	}
	for _, name := range slices.Concat(loaded.project.SeedFiles, loaded.project.Agent.Signature.KeyFiles) {
		if info, err := os.Stat(name); err == nil {
			digest += fmt.Sprint(" ", info.Size(), info.ModTime().UnixNano())
		}
	}
	return digest
}

// readProjectFileBytes reads a project file. It stops one octet after project.MaxFileSize, so that the
// parser can report a file that is too long.
func readProjectFileBytes(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe may never end
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, project.MaxFileSize+1))
	return text, errors.Join(err, f.Close())
}
