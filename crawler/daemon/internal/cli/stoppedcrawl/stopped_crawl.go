package stoppedcrawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A Crawl is one that nobody runs at the moment, opened to be looked into.
// Opening and closing it changes nothing of it: after a crash, its hosts rest
// as long as if the crawl went on at that moment, and that is kept too.
//
// It is an api.Inspector.
type Crawl struct {
	inspect.Inspector
	Dir           datadir.StateDir
	env           *command.Env
	directoryLock *datadir.DirectoryLock // nil if there is no crawl: the stores are empty
}

// OpenAndDo opens the crawl in a directory for as long as do works with it, or until
// a signal ends that.
func OpenAndDo(ctx context.Context, env *command.Env, name string, do func(context.Context, *Crawl) error) error {
	k, err := Open(env, name)
	if err != nil {
		return err
	}
	return k.UseAndClose(ctx, env, do)
}

// UseAndClose calls do with the crawl until a signal ends that, and closes the crawl.
func (k *Crawl) UseAndClose(ctx context.Context, env *command.Env, do func(context.Context, *Crawl) error) (err error) {
	ctx, stop := env.WithSignalCancel(ctx)
	defer stop()
	err = do(ctx, k)
	if errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		err = &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	}
	return errors.Join(err, k.Close())
}

// Open opens the crawl in a directory. Close must be called in the end.
func Open(env *command.Env, name string) (*Crawl, error) {
	dir := datadir.StateDir(name)
	if err := dir.RequireCrawl(); err != nil {
		return nil, err
	}
	d, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return nil, err
	}
	d.Store.Path = name // it may have been moved since
	return OpenProject(env, d.Project)
}

// OpenProject opens the crawl in the project's directory as the project is now, which
// may not be as it was when the crawl was started last. Where there is none, it
// is as before its first visit.
func OpenProject(env *command.Env, p project.Project) (_ *Crawl, err error) {
	k := &Crawl{Inspector: inspect.Inspector{Name: "the crawl in " + p.Store.Path, Project: p, AsOf: time.Now()}, Dir: datadir.StateDir(p.Store.Path), env: env}
	k.Scope = sync.OnceValue(k.scopeOrWarn)
	hasCrawl, err := k.Dir.HasCrawl()
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
		return nil, fmt.Errorf("%s: %w", k.Dir.Path(datadir.ProjectFile), err)
	}
	if !hasCrawl {
		k.FrontierStore, k.RobotsStore = memory.New(memory.Config{}), memory.New(memory.Config{})
	} else if err := k.openStores(); err != nil {
		return nil, err
	}
	k.Gate = gate.New(gateConfig, k.RobotsStore)
	return k, nil
}

// openStores opens the crawl's stores, which nobody else may have open.
func (k *Crawl) openStores() (err error) {
	if k.directoryLock, err = k.Dir.Lock(); err != nil {
		return err
	}
	s, err := datadir.OpenStores(k.Project, k.env.BoltOptions(k.Project, nil))
	k.FrontierStore, k.RobotsStore = s.Frontier, s.Robots
	return err
}

// Close closes the stores, and lets others crawl from the directory.
func (k *Crawl) Close() (err error) {
	for _, s := range []storage.NoteStore{k.FrontierStore, k.RobotsStore} { // in this order: see OpenBoltFrontier
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if k.directoryLock != nil {
		err = errors.Join(err, k.directoryLock.Close())
	}
	return err
}

// loadScope works out the scope, for which all seeds are read.
func (k *Crawl) loadScope() (*frontier.Scope, error) {
	cfg, err := k.Project.ScopeConfig()
	if err != nil {
		return nil, err
	}
	seedPerOrigin, err := k.Project.FirstSeedPerOrigin(os.Open)
	return frontier.NewScope(cfg, seedPerOrigin), err
}

// scopeOrWarn returns the scope. Where that fails, since a file of seeds is gone for example,
// answers lack what is out of scope.
func (k *Crawl) scopeOrWarn() *frontier.Scope {
	scope, err := k.loadScope()
	if err != nil {
		k.env.Log.Warn("what is out of scope cannot be told", "why", err)
		return nil
	}
	return scope
}

// AddURLs is part of api.Inspector. It returns nil if nothing can be added.
func (k *Crawl) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	scope, err := k.loadScope()
	if err != nil {
		return nil, err
	}
	f := frontier.New(k.FrontierStore, frontier.Config{Scope: scope, ParamCleaner: k.ParamCleaner, CleanURL: k.Gate.CleanURL})
	return inspect.AddURLs(ctx, f.DiscoverReportingRefusals, lines)
}
