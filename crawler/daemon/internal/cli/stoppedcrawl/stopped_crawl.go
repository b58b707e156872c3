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

// A Crawl is the open state of a crawl that no process runs. It implements api.Inspector.
//
// Opening and closing it does not change what the crawl will do. After a crash, the first open
// makes the hosts wait as a resumed crawl would, and a later resume honours that wait too.
type Crawl struct {
	inspect.Inspector
	Dir           datadir.StateDir
	env           *command.Env
	directoryLock *datadir.DirectoryLock // nil if the directory holds no crawl; the stores are then empty
	seedRedirects frontier.SeedRedirects // of all runs
}

// OpenAndDo opens the crawl in the directory name, calls do with it and closes it. A signal cancels
// the context of do; the error then has the exit code ExitStopped.
func OpenAndDo(ctx context.Context, env *command.Env, name string, do func(context.Context, *Crawl) error) error {
	k, err := Open(env, name)
	if err != nil {
		return err
	}
	return k.UseAndClose(ctx, env, do)
}

// UseAndClose calls do with the crawl and closes the crawl. A signal cancels the context of do; the
// error then has the exit code ExitStopped.
func (k *Crawl) UseAndClose(ctx context.Context, env *command.Env, do func(context.Context, *Crawl) error) (err error) {
	ctx, stop := env.WithSignalCancel(ctx)
	defer stop()
	err = do(ctx, k)
	if errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		err = &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	}
	return errors.Join(err, k.Close())
}

// Open opens the crawl in the directory name with the project that is saved there. The caller must
// call Close. Open fails if the directory holds no crawl or another process uses it.
func Open(env *command.Env, name string) (*Crawl, error) {
	dir := datadir.StateDir(name)
	if err := dir.RequireCrawl(); err != nil {
		return nil, err
	}
	d, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return nil, err
	}
	d.Store.Path = name // the directory may have been moved since
	return OpenProject(env, d.Project)
}

// OpenProject opens the crawl in the directory p.Store.Path with the project p, which may differ
// from the one the crawl last ran with. If the directory holds no crawl, OpenProject returns a Crawl
// without URLs and visits, and does not create the directory.
func OpenProject(env *command.Env, p project.Project) (_ *Crawl, err error) {
	k := &Crawl{Inspector: inspect.Inspector{Name: "the crawl in " + p.Store.Path, Project: p, AsOf: time.Now()},
		Dir: datadir.StateDir(p.Store.Path), env: env}
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
	// The project's rules, which explain and add URLs.
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

// openStores locks the data directory and opens the crawl's stores. Close closes what it has opened
// when it fails.
func (k *Crawl) openStores() (err error) {
	if k.directoryLock, err = k.Dir.Lock(); err != nil {
		return err
	}
	s, err := datadir.OpenStores(k.Project, k.env.BoltOptions(k.Project, nil))
	k.FrontierStore, k.RobotsStore = s.Frontier, s.Robots
	if err == nil { // now, because the scope is needed while the store is listed, too
		k.seedRedirects, err = frontier.ReadSeedRedirects(context.Background(), k.FrontierStore)
	}
	return err
}

// Close closes the stores and unlocks the data directory.
func (k *Crawl) Close() (err error) {
	// The frontier flushes the robots store before itself (see OpenBoltFrontier), so it closes first.
	for _, s := range []storage.NoteStore{k.FrontierStore, k.RobotsStore} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if k.directoryLock != nil {
		err = errors.Join(err, k.directoryLock.Close())
	}
	return err
}

// loadScope returns the scope of the project, with the sites that its seeds redirect to. It reads all
// seeds, and the files that list them.
func (k *Crawl) loadScope() (*frontier.Scope, error) {
	cfg, err := k.Project.ScopeConfig()
	if err != nil {
		return nil, err
	}
	seedPerOrigin, err := k.Project.FirstSeedPerOrigin(os.Open)
	return frontier.NewScope(cfg, seedPerOrigin).WithSeedRedirects(k.seedRedirects), err
}

// scopeOrWarn returns the scope of the project. If that fails, for example because a file of seeds
// is gone, it logs a warning and returns nil; answers then do not say which URLs are out of scope.
func (k *Crawl) scopeOrWarn() *frontier.Scope {
	scope, err := k.loadScope()
	if err != nil {
		k.env.Log.Warn("cannot determine which URLs are out of scope", "why", err)
		return nil
	}
	return scope
}

// AddURLs implements api.Inspector. It returns a nil result if the scope cannot be loaded, and then
// adds no URL.
func (k *Crawl) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	scope, err := k.loadScope()
	if err != nil {
		return nil, err
	}
	f := frontier.New(k.FrontierStore, frontier.Config{Scope: scope, ParamCleaner: k.ParamCleaner,
		CleanURL: k.Gate.CleanURL})
	return inspect.AddURLs(ctx, f.DiscoverReportingRefusals, lines)
}
