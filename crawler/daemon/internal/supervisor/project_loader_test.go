package supervisor

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// A projectLoader makes the paths of a project absolute, and refuses an output that another
// project writes, and handlers that the program lacks.
func TestProjectLoader(t *testing.T) {
	dir := t.TempDir()
	stateStore, err := openDaemonStateStore(filepath.Join(dir, datadir.DaemonStateFile))
	if err != nil {
		t.Fatal(err)
	}
	l := &projectLoader{
		projectPaths: projectPaths{DataDir: datadir.StateDir(filepath.Join(dir, "data")),
			ProjectFilesDir: filepath.Join(dir, "projects")},
		stateStore: stateStore,
		checkHandler: func(handler string) *project.FieldProblem {
			if handler == "" {
				return nil
			}
			return project.NewFieldProblem("handler", "the program has no such handler")
		},
		jsonlOwner: func(path string) string {
			if filepath.Base(path) == "taken.jsonl" {
				return "other"
			}
			return ""
		},
	}
	const text = "agent: {contact: 'mailto:bot@example.com'}\nseeds: [http://site.test/]\n"
	loaded, err := l.parseAndValidateProject("shop", []byte(text+"output: {jsonl: a.jsonl}\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "data", datadir.ProjectsDir, "shop", "a.jsonl")
	if got := loaded.project.Output.JSONL; got != want || loaded.project.Name != "shop" ||
		loaded.pathConfinement != nil {
		t.Errorf("%s writes %s, want %s", loaded.project.Name, got, want)
	}
	for more, want := range map[string]string{
		"output: {jsonl: taken.jsonl}\n": "is written by project other",
		"handler: shop\n":                "has no such handler",
		"project: blog\n":                "is not the name of its file",
	} {
		if _, err := l.parseAndValidateProject("shop", []byte(text+more), false); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", more, err, want)
		}
	}
	confined, err := l.parseAndValidateProject("shop", []byte(text), true)
	if err != nil || confined.pathConfinement == nil {
		t.Errorf("a project from the API has confinement %v, error %v", confined.pathConfinement, err)
	}
	if l.lastValidProject("shop") != nil {
		t.Error("a project that never ran has a last valid file")
	}
}
