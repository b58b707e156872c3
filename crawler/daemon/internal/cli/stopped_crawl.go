package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A stoppedCrawl is one that nobody runs at the moment, opened to be looked into.
// Opening and closing it changes nothing of it: after a crash, its hosts rest
// as long as if the crawl went on at that moment, and that is kept too.
type stoppedCrawl struct {
	inspect.Inspector
	dir           datadir.StateDir
	robotsStore   storage.NoteStore
	directoryLock *datadir.DirectoryLock // nil if there is no crawl: the stores are empty
}

// openStoppedCrawlAndDo opens the crawl in a directory for as long as do works with it, or until
// a signal ends that.
func openStoppedCrawlAndDo(ctx context.Context, env *Env, name string, do func(context.Context, *stoppedCrawl) error) error {
	k, err := openStoppedCrawl(env, name)
	if err != nil {
		return err
	}
	return k.useAndClose(ctx, env, do)
}

// useAndClose calls do with the crawl until a signal ends that, and closes the crawl.
func (k *stoppedCrawl) useAndClose(ctx context.Context, env *Env, do func(context.Context, *stoppedCrawl) error) (err error) {
	ctx, stop := env.withSignalCancel(ctx)
	defer stop()
	err = do(ctx, k)
	if errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		err = &exitError{Code: ExitStopped, Err: engine.ErrInterrupted}
	}
	return errors.Join(err, k.Close())
}

// openStoppedCrawl opens the crawl in a directory. Close must be called in the end.
func openStoppedCrawl(env *Env, name string) (*stoppedCrawl, error) {
	dir := datadir.StateDir(name)
	if err := dir.RequireCrawl(); err != nil {
		return nil, err
	}
	d, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return nil, err
	}
	d.Store.Path = name // it may have been moved since
	return openStoppedProjectCrawl(env, d.Project)
}

// openStoppedProjectCrawl opens the crawl in the project's directory as the project is now, which
// may not be as it was when the crawl was started last. Where there is none, it
// is as before its first visit.
func openStoppedProjectCrawl(env *Env, p project.Project) (_ *stoppedCrawl, err error) {
	k := &stoppedCrawl{Inspector: inspect.Inspector{Project: p, Time: time.Now()}, dir: datadir.StateDir(p.Store.Path)}
	hasCrawl, err := k.dir.HasCrawl()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.Close())
		}
	}()
	gateConfig, err := p.GateConfig()
	if err == nil {
		k.ParamCleaner, err = p.ParamCleaner()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.dir.Path(datadir.ProjectFile), err)
	}
	if hasCrawl {
		err = k.openStores(env)
	} else {
		k.FrontierStore, k.robotsStore = memory.New(memory.Config{}), memory.New(memory.Config{})
	}
	if err != nil {
		return nil, err
	}
	k.Gate = gate.New(gateConfig, k.robotsStore)
	return k, nil
}

// openStores opens the crawl's stores, which nobody else may have open.
func (k *stoppedCrawl) openStores(env *Env) (err error) {
	if k.directoryLock, err = k.dir.Lock(); err != nil {
		return err
	}
	s, err := datadir.OpenStores(k.Project, env.BoltOptions(k.Project, nil))
	k.FrontierStore, k.robotsStore = s.Frontier, s.Robots
	return err
}

// Close closes the stores, and lets others crawl from the directory.
func (k *stoppedCrawl) Close() (err error) {
	for _, s := range []storage.NoteStore{k.FrontierStore, k.robotsStore} { // in this order: see OpenBoltFrontier
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if k.directoryLock != nil {
		err = errors.Join(err, k.directoryLock.Close())
	}
	return err
}
