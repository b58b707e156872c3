package supervisor

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/politeness"
)

// fakeSharedValues holds shared values in memory. A test can change them between a read and the arrival of
// its result.
type fakeSharedValues struct {
	values    map[string]string
	version   int
	afterRead func() // called once after the next read, before ReadIfChanged returns its result
}

func (b *fakeSharedValues) ReadIfChanged(_ context.Context, version string) (map[string]string, string, error) {
	values, newVersion := maps.Clone(b.values), strconv.Itoa(b.version)
	if afterRead := b.afterRead; afterRead != nil {
		b.afterRead = nil
		afterRead()
	}
	if version == newVersion {
		return nil, newVersion, nil
	}
	return values, newVersion, nil
}

func (b *fakeSharedValues) CompareAndSet(_ context.Context, name, value, _ string) (bool, error) {
	b.version++
	if b.values[name] = value; value == "" {
		delete(b.values, name)
	}
	return true, nil
}

// Shared values that were read before this process set or lifted a brake, and that arrive afterwards,
// neither lift the brake nor set it again.
func TestOutdatedSharedBrakes(t *testing.T) {
	stateStore, err := openDaemonStateStore(filepath.Join(t.TempDir(), datadir.DaemonStateFile))
	if err != nil {
		t.Fatal(err)
	}
	o, err := openOperatorBrakes(&politeness.Brakes{}, stateStore, &eventBroker{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	values := &fakeSharedValues{values: map[string]string{}}
	merge := func(values map[string]string, outdated func() bool) (map[string]string, bool) {
		return o.mergeSharedBrakes("here", values, outdated)
	}
	c := engine.NewCrossProcessBrakes("here", values, merge, slog.New(slog.DiscardHandler))
	o.sharedBrakesByID[c.StoreID] = c
	version := ""
	checkBrakes := func(want ...string) {
		t.Helper()
		if version, err = c.Sync(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		on := map[string]bool{}
		for _, b := range o.active.All() {
			on[b.Host] = true
		}
		for _, host := range want {
			if !on[host] || len(on) != len(want) {
				t.Errorf("the hosts %v have brakes, want %v", on, want)
			}
		}
	}
	brake := func(host string) {
		t.Helper()
		if err := o.SetBrake(t.Context(),
			api.Brake{Host: host, Stop: true, Reason: "test", Since: time.Now()}); err != nil {
			t.Error(err)
		}
	}
	brake("a.example")
	values.afterRead = func() { brake("b.example") }
	checkBrakes("a.example", "b.example")
	brake("c.example")
	values.afterRead = func() {
		if err := o.LiftBrake(t.Context(), "b.example"); err != nil {
			t.Error(err)
		}
	}
	checkBrakes("a.example", "c.example")
	checkBrakes("a.example", "c.example")
}
