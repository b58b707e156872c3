package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A kept crawl is one that nobody runs at the moment, opened to be looked into.
// Opening and closing it changes nothing of it: after a crash, its hosts rest
// as long as if the crawl went on at that moment, and that is kept too.
type kept struct {
	project Project
	dir     stateDir
	store   store
	robots  store
	gate    *robots.Gate
	scope   *frontier.Scope // nil if it is not known
	params  *frontier.Params
	now     time.Time
	lock    *os.File

	overrides map[string]map[string]any // by host
}

// A store is one that can be asked what it holds.
type store interface {
	storage.Store
	storage.Inspector
	FileStats() (bolt.FileStats, error)
}

// dataFlag adds the flag that says which crawl is meant.
func dataFlag(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "data", DefaultProject().Store.Path, "`DIR` that keeps the state of the crawl")
}

// look opens the crawl in a directory for as long as do works with it, or until
// a signal ends that.
func (a *app) look(ctx context.Context, name string, do func(context.Context, *kept) error) error {
	k, err := a.openKept(name)
	if err != nil {
		return err
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	err = do(ctx, k)
	if errors.Is(context.Cause(ctx), errSignal) {
		err = &exit{ExitStopped, errSignal}
	}
	return errors.Join(err, k.Close())
}

// openKept opens the crawl in a directory. Close must be called in the end.
func (a *app) openKept(name string) (_ *kept, err error) {
	k := &kept{dir: stateDir(name), now: time.Now()}
	if err := k.dir.mustHoldCrawl(); err != nil {
		return nil, err
	}
	if k.lock, err = k.dir.lock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.Close())
		}
	}()
	d, err := readDraft(k.dir.path(projectFile))
	if err != nil {
		return nil, err
	}
	k.project = d.Project
	k.project.Store.Path = name // it may have been moved since
	gate, err := k.project.gateConfig()
	if err == nil {
		k.overrides, err = k.project.overrides()
	}
	if err == nil {
		k.params, err = k.project.params()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.dir.path(projectFile), err)
	}
	j := &job{}
	err = j.openStores(k.project, a)
	k.store, _ = j.store.(store)
	k.robots, _ = j.robots.(store)
	if err != nil {
		return nil, err
	}
	k.gate = robots.NewGate(gate, k.robots)
	return k, nil
}

// withScope works out the scope, for which all seeds are read.
func (k *kept) withScope() error {
	cfg, err := k.project.scope()
	if err != nil {
		return err
	}
	roots, err := k.project.roots()
	if err != nil {
		return err
	}
	k.scope = frontier.NewScope(cfg, roots)
	return nil
}

// Close closes the stores, and lets others crawl from the directory.
func (k *kept) Close() (err error) {
	for _, s := range []store{k.robots, k.store} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return errors.Join(err, k.lock.Close())
}
