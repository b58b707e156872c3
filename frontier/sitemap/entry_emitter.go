package sitemap

import (
	"errors"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A partialEntry is an entry as far as it was read.
type partialEntry struct {
	loc         []byte
	fallbackLoc []byte // for want of loc
	locErr      error  // why loc is unusable
	line        int    // of loc, else of spare
	lastMod     time.Time
	priority    float64
	changeFreq  string
}

// reset empties the draft for the next entry.
func (d *partialEntry) reset() {
	*d = partialEntry{loc: d.loc[:0], fallbackLoc: d.fallbackLoc[:0], priority: DefaultPriority}
}

// setLocation gives the draft its location, or what there is of it and why that
// will not do.
func (d *partialEntry) setLocation(loc []byte, line int, locErr error) {
	d.loc, d.line, d.locErr = append(d.loc[:0], loc...), line, locErr
}

// rawLocation returns the location as the file has it.
func (d *partialEntry) rawLocation() []byte {
	if len(d.loc) > 0 {
		return d.loc
	}
	return d.fallbackLoc
}

// An entryEmitter takes drafts and hands entries on.
type entryEmitter struct {
	Options
	base             decorum.URL
	originPrefix     string // with what the URLs of the sitemap's origin begin
	directoryPrefix  string // with what those of its directory do
	remainingEntries int    // entries
	urlCount         int    // locations that are URLs
	yield            func(Entry) error
	stopped          bool // yield returned an error
}

func newEntryEmitter(base decorum.URL, options Options, yield func(Entry) error) *entryEmitter {
	s := &entryEmitter{Options: options, base: base, remainingEntries: options.MaxEntries, yield: yield}
	if !base.IsZero() {
		path, _, _ := strings.Cut(base.PathAndQuery(), "?")
		s.originPrefix = base.Origin().String() + "/"
		s.directoryPrefix = base.Origin().String() + path[:strings.LastIndexByte(path, '/')+1]
	}
	return s
}

// emit hands the draft on, if it names a URL that the sitemap may list.
func (s *entryEmitter) emit(d *partialEntry, isIndex bool) error {
	u, err := s.resolveLocation(d)
	place := s.directoryPrefix // that entitles the sitemap to list u
	if isIndex {
		place = s.originPrefix
	}
	isAllowed := place != "" && strings.HasPrefix(u.String(), place)
	if err == nil && s.StrictLocation && !isAllowed && (s.AllowsCrossSubmit == nil || !s.AllowsCrossSubmit(u.Origin())) {
		err = ErrLocation
	}
	switch {
	case err != nil:
		s.reportError(d.line, locationField, d.rawLocation(), err)
		return nil // one bad location does not spoil the others
	case s.remainingEntries == 0:
		return ErrLimit
	}
	s.remainingEntries--
	err = s.yield(Entry{
		URL: u, IsSitemap: isIndex, AllowedByLocation: isAllowed,
		LastMod: d.lastMod, Priority: d.priority, ChangeFreq: d.changeFreq,
	})
	s.stopped = err != nil
	return err
}

// locationField is what flaws call the element that says where an entry is.
const locationField = "location"

var errNoLocation = errors.New("there is none")

// resolveLocation returns the URL that the draft names. For want of a location proper
// only a whole URL will do: anything else may be any text.
func (s *entryEmitter) resolveLocation(d *partialEntry) (u decorum.URL, err error) {
	switch {
	case d.locErr != nil:
		return u, d.locErr
	case len(d.loc) > 0:
		u, err = s.base.ResolveBytes(d.loc)
	case len(d.fallbackLoc) > 0:
		u, err = decorum.URL{}.ResolveBytes(d.fallbackLoc)
	default:
		return u, errNoLocation
	}
	if e, ok := errors.AsType[*decorum.Error](err); ok {
		err = e.Err // a flaw says the rest
	}
	if err != nil {
		return u, err
	}
	s.urlCount++
	if len(u.String()) > s.MaxURLBytes {
		return u, ErrLimit
	}
	return u, nil
}

// reportError tells of something that cannot be used.
func (s *entryEmitter) reportError(line int, field string, text []byte, err error) {
	if s.OnEntryError == nil {
		return
	}
	const maxBytes = 256
	s.OnEntryError(EntryError{Line: line, Field: field, FieldText: string(text[:min(len(text), maxBytes)]), Err: err})
}
