package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// An offlineCrawl crawl is one that nobody runs at the moment, opened to be looked into.
// Opening and closing it changes nothing of it: after a crash, its hosts rest
// as long as if the crawl went on at that moment, and that is kept too.
type offlineCrawl struct {
	inquiry
	dir    stateDir
	robots store
	lock   *hold // nil if there is no crawl: the stores are empty
}

// dataFlag adds the flag that says which crawl is meant.
func dataFlag(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "data", DefaultProject().Store.Path, "`DIR` that keeps the state of the crawl")
}

// look opens the crawl in a directory for as long as do works with it, or until
// a signal ends that.
func (a *app) look(ctx context.Context, name string, do func(context.Context, *offlineCrawl) error) error {
	k, err := a.openOfflineCrawl(name)
	if err != nil {
		return err
	}
	return a.useAndCloseOfflineCrawl(ctx, k, do)
}

// useAndCloseOfflineCrawl is look at a crawl that is open. It is closed in the end.
func (a *app) useAndCloseOfflineCrawl(ctx context.Context, k *offlineCrawl, do func(context.Context, *offlineCrawl) error) (err error) {
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	err = do(ctx, k)
	if errors.Is(context.Cause(ctx), errSignal) {
		err = &exit{ExitStopped, errSignal}
	}
	return errors.Join(err, k.Close())
}

// openOfflineCrawl opens the crawl in a directory. Close must be called in the end.
func (a *app) openOfflineCrawl(name string) (*offlineCrawl, error) {
	dir := stateDir(name)
	if err := dir.mustHoldCrawl(); err != nil {
		return nil, err
	}
	d, err := readDraft(dir.path(projectFile))
	if err != nil {
		return nil, err
	}
	d.Store.Path = name // it may have been moved since
	return a.openAs(d.Project)
}

// openAs opens the crawl in the project's directory as the project is now, which
// may not be as it was when the crawl was started last. Where there is none, it
// is as before its first visit.
func (a *app) openAs(p Project) (_ *offlineCrawl, err error) {
	k := &offlineCrawl{inquiry: inquiry{project: p, now: time.Now()}, dir: stateDir(p.Store.Path)}
	holds, err := k.dir.holdsCrawl()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.Close())
		}
	}()
	gate, err := p.gateConfig()
	if err == nil {
		k.params, err = p.params()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.dir.path(projectFile), err)
	}
	if holds {
		err = k.openStores(a)
	} else {
		k.store, k.robots = storage.NewMemory(storage.Config{}), storage.NewMemory(storage.Config{})
	}
	if err != nil {
		return nil, err
	}
	k.gate = robots.NewGate(gate, k.robots)
	return k, nil
}

// openStores opens the crawl's stores, which nobody else may have open.
func (k *offlineCrawl) openStores(a *app) (err error) {
	if k.lock, err = k.dir.lock(); err != nil {
		return err
	}
	s, err := openStores(k.project, a.boltOptions(k.project, nil))
	k.store, k.robots = s.frontier, s.robots
	return err
}

// Close closes the stores, and lets others crawl from the directory.
func (k *offlineCrawl) Close() (err error) {
	for _, s := range []store{k.store, k.robots} { // in this order: see openFrontier
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if k.lock != nil {
		err = errors.Join(err, k.lock.Close())
	}
	return err
}
