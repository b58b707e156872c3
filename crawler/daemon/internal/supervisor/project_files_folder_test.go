package supervisor

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A projectFilesFolder lists the projects that have a file, says what is wrong with other files, and
// reports once that the folder is unreadable, and once that it is readable again.
func TestProjectFolder(t *testing.T) {
	events := &eventBroker{}
	ctx, stop := context.WithCancel(t.Context())
	all := events.subscribe(ctx, "")
	d := &projectFilesFolder{path: filepath.Join(t.TempDir(), "projects"), events: events,
		log: slog.New(slog.DiscardHandler)}
	for range 2 {
		if _, _, err := d.list(); err == nil || d.readError == "" {
			t.Fatalf("a folder that does not exist: %v, recorded %q", err, d.readError)
		}
	}
	if err := os.Mkdir(d.path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"shop.yaml", "blog.yaml", "blog.yml", "Shop.yaml", ".shop.yaml.swp", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(d.path, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, nonProject, err := d.list()
	if err != nil || d.readError != "" {
		t.Fatalf("error %v, recorded %q", err, d.readError)
	}
	if want := map[string]bool{"shop": true, "blog": true}; !maps.Equal(names, want) {
		t.Errorf("projects %v, want %v", names, want)
	}
	got := d.reportNonProjectFiles(nonProject)
	if len(got) != 2 || got[0].Project != "Shop.yaml" || got[1].Project != "blog.yml" ||
		got[0].Outcome != "refused" || got[1].Error == "" {
		t.Errorf("files of no project: %+v", got)
	}
	events.publish(api.Event{Type: "end"})
	count := 0
	for e := range all {
		if e.Type == "end" {
			break
		}
		count++
	}
	stop()
	if count != 2 {
		t.Errorf("%d events, want 2: the folder could not be read, and could again", count)
	}
}

// watch reloads when it begins, and when a file changes.
func TestProjectFolderWatch(t *testing.T) {
	d := &projectFilesFolder{path: t.TempDir(), events: &eventBroker{}, log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	reloads, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		d.watch(ctx, func() {
			select {
			case reloads <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	<-reloads
	if err := os.WriteFile(filepath.Join(d.path, "shop.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-reloads
	stop()
	<-ended
}
