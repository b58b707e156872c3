package supervisor

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// APIProjectRestrictions limit what projects that came by the API may read, write and connect to.
type APIProjectRestrictions struct {
	OutputRoot   string // projects write below this directory; empty: the daemon's directory
	InputRoot    string // projects read below this directory; empty: the folder of project files
	AllowPrivate bool   // projects may connect to private networks
}

// AddFlags defines the flags that set r: --output-root, --files-root and --api-private-networks.
func (r *APIProjectRestrictions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&r.OutputRoot, "output-root", "",
		"projects that come by the API write only below `DIR`, and in their own directory in --data")
	fs.StringVar(&r.InputRoot, "files-root", "",
		"projects that come by the API read files only below `DIR` (default: the folder of project files)")
	fs.BoolVar(&r.AllowPrivate, "api-private-networks", false,
		"let projects that come by the API set fetch.allow_private, fetch.connect_to, fetch.proxy and store.redis")
}

// withAbsoluteDirs returns r with its defaults and with absolute directories. A directory that is set
// and does not exist is an error of usage.
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

// confinementOf returns the confinement of a project that came by the API, and nil for the operator's
// own projects.
func (l *projectLoader) confinementOf(project string, byAPI bool) *confine.ProjectAccess {
	if !byAPI {
		return nil
	}
	return &confine.ProjectAccess{
		OutputRoot: l.apiRestrictions.OutputRoot, InputRoot: l.apiRestrictions.InputRoot,
		ProjectDir: string(l.projectStateDir(project)), ProtectedDataDir: string(l.DataDir),
		ProjectFilesDir: l.ProjectFilesDir,
		AllowPrivate:    l.apiRestrictions.AllowPrivate, IsKnownOutput: func(path string) bool {
			return l.stateStore.isKnownOutputFile(project, path)
		},
		RecordOutput: func(path string) error { return l.stateStore.addKnownOutputFile(project, path) },
	}
}

// checkProjectConfinement returns the settings of a project that its confinement c does not allow.
func (l *projectLoader) checkProjectConfinement(name string, p project.Project,
	c *confine.ProjectAccess) (problems []*project.FieldProblem) {
	if c == nil {
		return nil
	}
	// The files of the project must be below the directories for projects that come by the API.
	p.ForEachFilePath(func(f project.FilePathField, field string, path *string) {
		allows, dir, flag := c.AllowsOutput, c.OutputRoot, "--output-root"
		if f.Use == project.InputFile {
			allows, dir, flag = c.AllowsInput, c.InputRoot, "--files-root"
		}
		if f.Use == project.StateDirectory || allows(l.absolutePath(name, f.Use, *path)) {
			return
		}
		problems = append(problems, project.NewFieldProblem(field,
			"%q is outside of %s, which projects that come by the API are held to; "+
				"name a place below it, start the daemon with another %s, or put the project file into %s by hand",
			*path, dir, flag, c.ProjectFilesDir))
	})
	if c.AllowPrivate {
		return problems
	}
	// The project must not reach into private networks, neither directly nor by a proxy or a store.
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
			problems = append(problems, project.NewFieldProblem(f.field,
				"may reach into private networks, which a project that comes by the API may not; "+
					"leave it out, start the daemon with --api-private-networks, "+
					"or put the project file into %s by hand", c.ProjectFilesDir))
		}
	}
	return problems
}
