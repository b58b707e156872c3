package frontier

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Notes of the crawl about redirects of seeds that left the scope. A space separates origins in keys and
// values. Each note is written without reading it first, because other processes may write it, too.
const (
	// The keys of a seed whose redirects ended at a page of another site: the origins of the seed and of
	// that page, in PathScope with the directory of the page. The value is "1".
	followedRedirectPrefix = "seed_redirect "
	// The same for a seed that redirects to a URL that the crawl knew already.
	knownRedirectPrefix = "seed_redirect_known "
	// The key of a site that joined the scope: its scopeKey. The value is the origins of one redirect.
	redirectSitePrefix = "seed_redirect_site "
)

// maxSeedRedirects is how many pairs of a seed's origin and the origin or directory at the end of its
// redirects one Frontier handles. Further redirects of seeds do not extend the scope.
const maxSeedRedirects = 100_000

// maxRedirectDirectory bounds the length of a directory in a note, in bytes. Redirects to longer ones do not
// extend the scope.
const maxRedirectDirectory = 1024

// A seedRedirect says that redirects led from a seed to another site.
type seedRedirect struct {
	seed, target decorum.Origin
	directory    string // of the target, with both slashes, in PathScope; empty in other modes
}

// String returns the seed and the target as in the notes.
func (r seedRedirect) String() string { return r.seed.String() + " " + r.targetText() }

// targetText returns the target and the directory.
func (r seedRedirect) targetText() string { return r.target.String() + r.directory }

// parseSeedRedirect parses what String returned.
func parseSeedRedirect(text string) (r seedRedirect, ok bool) {
	from, to, _ := strings.Cut(text, " ")
	seed, seedErr := decorum.ParseURL(from)
	target, err := decorum.ParseURL(to)
	r = seedRedirect{seed: seed.Origin(), target: target.Origin()}
	if strings.HasSuffix(to, "/") {
		r.directory = directoryOf(target)
	}
	return r, seedErr == nil && err == nil && r.String() == text
}

// SeedRedirects are the redirects by which seeds of a crawl left its scope.
type SeedRedirects struct {
	all      []seedRedirect
	followed map[string]bool // targets where the redirects of a seed ended at a page, by targetText
}

// ReadSeedRedirects reads the redirects of all runs of the crawl whose notes these are.
func ReadSeedRedirects(ctx context.Context, notes storage.NoteStore) (SeedRedirects, error) {
	read, err := readCrawlNotes(ctx, notes)
	return read.seedRedirects, err
}

// addNote adds the redirect that the key of a note describes, if it describes one.
func (s *SeedRedirects) addNote(key string) {
	text, isFollowed := strings.CutPrefix(key, followedRedirectPrefix)
	if !isFollowed {
		known, isKnown := strings.CutPrefix(key, knownRedirectPrefix)
		if !isKnown {
			return
		}
		text = known
	}
	r, ok := parseSeedRedirect(text)
	if !ok {
		return
	}
	if s.followed == nil {
		s.followed = map[string]bool{}
	}
	s.all = append(s.all, r)
	s.followed[r.targetText()] = s.followed[r.targetText()] || isFollowed
}

// WithSeedRedirects returns s with the sites that its seeds redirect to. It ignores redirects of URLs
// that are no seeds any more. A nil Scope stays nil.
func (s *Scope) WithSeedRedirects(redirects SeedRedirects) *Scope {
	if s == nil {
		return nil
	}
	t := redirectTracker{base: s}
	t.apply(redirects)
	return t.extendedScope()
}

// A redirectTracker extends the scope of one Frontier by the sites that redirects of seeds led to.
type redirectTracker struct {
	notes storage.Notes
	base  *Scope   // without these sites; nil: every URL belongs to the crawl
	sites sync.Map // set of scopeKeys, which are strings

	mu      sync.Mutex            // guards handled, and is held while notes are written
	handled map[seedRedirect]bool // whether the redirect was followed; it has a note
}

// extendedScope returns base with the sites of t, also with later ones. It is nil if base is.
func (t *redirectTracker) extendedScope() *Scope {
	if t.base == nil {
		return nil
	}
	s := *t.base
	s.hasRedirectSite = func(scopeKey string) bool {
		_, ok := t.sites.Load(scopeKey)
		return ok || t.base.hasRedirectSite != nil && t.base.hasRedirectSite(scopeKey)
	}
	return &s
}

// LoadSeedRedirects extends the scope to the sites that redirects of the present seeds led to in earlier
// runs and in other processes. Discover and CheckLeasedScope call it; other callers need it only before
// they use Scope.
func (f *Frontier) LoadSeedRedirects(ctx context.Context) error { return f.notes.readIfDue(ctx) }

// applyAll extends the scope by redirects of present seeds.
func (t *redirectTracker) applyAll(redirects SeedRedirects) {
	if t.base == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.apply(redirects)
}

// apply extends the scope by redirects of present seeds. The caller holds t.mu.
func (t *redirectTracker) apply(redirects SeedRedirects) {
	for _, r := range redirects.all {
		isFollowed := redirects.followed[r.targetText()]
		key, r, ok := t.base.redirectKey(r)
		if ok && t.base.mayRedirect(r.seed, r.target) && t.remember(r, isFollowed) && isFollowed {
			t.sites.Store(key, true)
		}
	}
}

// remember adds r to handled. It returns false if r is there already, or if there are too many. The
// caller holds t.mu.
func (t *redirectTracker) remember(r seedRedirect, followed bool) bool {
	wasFollowed, known := t.handled[r]
	if wasFollowed || known && !followed || !known && len(t.handled) >= maxSeedRedirects {
		return false
	}
	if t.handled == nil {
		t.handled = map[seedRedirect]bool{}
	}
	t.handled[r] = followed
	return true
}

// ExtendScopeToSeedTarget extends the scope to the site of page, which was visited and exists, if e is the
// entry of that visit and redirects of a seed led to it from another site. It reports whether the crawl
// has followed a redirect between these two origins for the first time. Later runs and other processes
// with the same seed have the same scope.
func (f *Frontier) ExtendScopeToSeedTarget(ctx context.Context, e storage.Entry) (extended bool, err error) {
	t := f.redirects
	r, ok := t.redirectOf(e)
	if !ok {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.remember(r, true) {
		return false, nil
	}
	key := t.base.scopeKey(e.URL)
	err = t.notes.SetNote(ctx, decorum.Origin{}, followedRedirectPrefix+r.String(), []byte("1"))
	if err == nil {
		err = t.notes.SetNote(ctx, decorum.Origin{}, redirectSitePrefix+key, []byte(r.String()))
	}
	if err != nil {
		delete(t.handled, r)
		return false, err
	}
	t.sites.Store(key, true)
	return true, nil
}

// redirectOf returns the redirect that led from a seed of the crawl to e, and false if none did, or if e
// is on the site of a seed. In PathScope, a page above the directory of a seed, such as the home page that
// stands for a missing one, does not replace that directory.
func (t *redirectTracker) redirectOf(e storage.Entry) (r seedRedirect, ok bool) {
	if e.SeedOrigin.IsZero() || t.base == nil || !t.base.mayRedirect(e.SeedOrigin, e.URL.Origin()) {
		return r, false
	}
	r = seedRedirect{seed: e.SeedOrigin, target: e.URL.Origin()}
	if t.base.cfg.Mode == PathScope {
		r.directory = directoryOf(e.URL)
	}
	_, isAboveSeed := t.base.scopeKeys[t.base.scopeKey(e.URL)]
	return r, !isAboveSeed && !t.base.isSeedSite(e.URL) && len(r.directory) <= maxRedirectDirectory
}

// redirectKey returns the scopeKey of the target of r, and r as redirectOf returns it. It returns false if
// r has no directory, because it is from a run in another mode, and the present one needs it.
func (s *Scope) redirectKey(r seedRedirect) (string, seedRedirect, bool) {
	key := s.cfg.Mode.siteKey(r.target)
	if s.cfg.Mode == PathScope {
		return key + r.directory, r, r.directory != ""
	}
	r.directory = ""
	return key, r, true
}

// DiscoverRedirect is Discover for the target of a redirect. If a seed redirects to a URL that the crawl
// knows already, no visit shows where this seed leads, so a note keeps it: the target belongs to the
// scope because of this seed, too, if it does because of another one.
func (f *Frontier) DiscoverRedirect(ctx context.Context, e storage.Entry) (added int, err error) {
	refused := false
	entries := []storage.Entry{e}
	added, err = f.DiscoverReportingRefusals(ctx, func(storage.Entry, error) { refused = true }, entries)
	if err != nil || added > 0 || refused {
		return added, err
	}
	t := f.redirects
	r, ok := t.redirectOf(entries[0]) // as Discover has rewritten it
	if !ok {
		return added, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.remember(r, false) {
		return added, nil
	}
	return added, t.notes.SetNote(ctx, decorum.Origin{}, knownRedirectPrefix+r.String(), []byte("1"))
}

// CheckLeasedScope is CheckScope for a leased URL. Another process, in which the URL was found, may have
// extended the scope.
func (f *Frontier) CheckLeasedScope(ctx context.Context, e storage.Entry) error {
	if err := f.LoadSeedRedirects(ctx); err != nil {
		return err
	}
	err := f.CheckScope(e)
	if err == nil || RefusalReasonOf(err) != OutsideScope {
		return err
	}
	var readErr error
	isInside := f.redirects.base.anyScopeKey(e.URL, func(key string) bool {
		isInside, err := f.redirects.readSite(ctx, key)
		readErr = cmp.Or(readErr, err)
		return isInside || err != nil
	})
	if readErr != nil {
		return readErr
	}
	if !isInside {
		return err
	}
	return f.CheckScope(e)
}

// readSite extends the scope to the site with this scopeKey if a note says that a seed led there.
func (t *redirectTracker) readSite(ctx context.Context, key string) (isInside bool, err error) {
	note, err := t.notes.ReadNote(ctx, decorum.Origin{}, redirectSitePrefix+key)
	if err != nil {
		return false, err
	}
	r, ok := parseSeedRedirect(string(note))
	if !ok || !t.base.mayRedirect(r.seed, r.target) {
		return false, nil
	}
	t.sites.Store(key, true)
	return true, nil
}
