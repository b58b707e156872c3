package daemon

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// A fakeBoard is a board, of which what was read arrives late.
type fakeBoard struct {
	storage.Store
	on      map[string]string
	version int
	arrives func() // called when the board was read, before its reader has it
}

func (b *fakeBoard) Board(_ context.Context, version string) (map[string]string, string, error) {
	board, newest := maps.Clone(b.on), strconv.Itoa(b.version)
	if arrives := b.arrives; arrives != nil {
		b.arrives = nil
		arrives()
	}
	if version == newest {
		return nil, newest, nil
	}
	return board, newest, nil
}

func (b *fakeBoard) Post(_ context.Context, name, value, _ string) (bool, error) {
	b.version++
	if b.on[name] = value; value == "" {
		delete(b.on, name)
	}
	return true, nil
}

// What a board held before a brake was put on here, or lifted, and is heard of after it,
// neither lifts the brake nor puts it on again.
func TestBoardThatIsOutdated(t *testing.T) {
	wishes, err := openWishes(filepath.Join(t.TempDir(), wishesFile))
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{app: &app{log: slog.New(slog.DiscardHandler)}, wishes: wishes, shared: shared{brakes: &politeness.Brakes{}}, commons: map[string]*commons{}}
	board := &fakeBoard{on: map[string]string{}}
	c := &commons{key: "here", store: board, opened: make(chan struct{}), heed: func(board map[string]string, outdated func() bool) (map[string]string, bool) {
		return s.heedBoard("here", board, outdated)
	}}
	close(c.opened)
	s.commons[c.key] = c
	version := ""
	look := func(want ...string) {
		t.Helper()
		if version, err = c.look(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		on := map[string]bool{}
		for _, b := range s.brakes.All() {
			on[b.Host] = true
		}
		for _, host := range want {
			if !on[host] || len(on) != len(want) {
				t.Errorf("there are brakes on %v, want %v", on, want)
			}
		}
	}
	brake := func(host string) {
		t.Helper()
		if err := s.SetBrake(t.Context(), api.Brake{Host: host, Stop: true, Reason: "test", Since: time.Now()}); err != nil {
			t.Error(err)
		}
	}
	brake("a.example")
	board.arrives = func() { brake("b.example") }
	look("a.example", "b.example")
	brake("c.example")
	board.arrives = func() {
		if err := s.LiftBrake(t.Context(), "b.example"); err != nil {
			t.Error(err)
		}
	}
	look("a.example", "c.example")
	look("a.example", "c.example")
}
