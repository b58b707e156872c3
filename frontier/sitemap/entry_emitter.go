package sitemap

import (
	"errors"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A partialEntry is an entry that is being read.
type partialEntry struct {
	loc         []byte
	fallbackLoc []byte // used if loc is empty
	locErr      error  // why loc is unusable
	line        int    // of loc, otherwise of fallbackLoc
	lastMod     time.Time
	priority    float64
	changeFreq  string
}

// reset prepares d for the next entry.
func (d *partialEntry) reset() {
	*d = partialEntry{loc: d.loc[:0], fallbackLoc: d.fallbackLoc[:0], priority: DefaultPriority}
}

// setLocation sets the location to loc. locErr, unless it is nil, says why the location is
// unusable.
func (d *partialEntry) setLocation(loc []byte, line int, locErr error) {
	d.loc, d.line, d.locErr = append(d.loc[:0], loc...), line, locErr
}

// rawLocation returns the location as it is written in the file.
func (d *partialEntry) rawLocation() []byte {
	if len(d.loc) > 0 {
		return d.loc
	}
	return d.fallbackLoc
}

// An entryEmitter turns partialEntries into entries, and calls yield with them.
type entryEmitter struct {
	Options
	base             decorum.URL // relative locations are resolved against it
	originPrefix     string      // prefix of all URLs of the sitemap's origin
	directoryPrefix  string      // prefix of all URLs in the sitemap's directory
	remainingEntries int         // until MaxEntries is reached
	urlCount         int         // locations that are URLs
	yield            func(Entry) error
	stopped          bool // yield returned an error
}

// newEntryEmitter returns an entryEmitter for a sitemap at base.
func newEntryEmitter(base decorum.URL, options Options, yield func(Entry) error) *entryEmitter {
	s := &entryEmitter{Options: options, base: base, remainingEntries: options.MaxEntries, yield: yield}
	if !base.IsZero() {
		path, _, _ := strings.Cut(base.PathAndQuery(), "?")
		s.originPrefix = base.Origin().String() + "/"
		s.directoryPrefix = base.Origin().String() + path[:strings.LastIndexByte(path, '/')+1]
	}
	return s
}

// emit yields the entry d, or reports why it is skipped.
func (s *entryEmitter) emit(d *partialEntry, isIndex bool) error {
	u, err := s.resolveLocation(d)
	place := s.directoryPrefix // prefix of the URLs that the sitemap may list
	if isIndex {
		place = s.originPrefix
	}
	isAllowed := place != "" && strings.HasPrefix(u.String(), place)
	if err == nil && s.StrictLocation && !isAllowed &&
		(s.AllowsCrossSubmit == nil || !s.AllowsCrossSubmit(u.Origin())) {
		err = ErrLocation
	}
	switch {
	case err != nil:
		s.reportError(d.line, locationField, d.rawLocation(), err)
		return nil // the other entries can be used
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

// locationField is EntryError.Field of an unusable location.
const locationField = "location"

// errNoLocation is the reason of an entry without a location.
var errNoLocation = errors.New("missing")

// resolveLocation returns the URL of d. A fallbackLoc must be an absolute URL: otherwise it may be
// any text.
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
		err = e.Err // EntryError has the rest of e
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

// reportError calls OnEntryError for a text that cannot be used.
func (s *entryEmitter) reportError(line int, field string, text []byte, err error) {
	if s.OnEntryError == nil {
		return
	}
	const maxBytes = 256
	s.OnEntryError(EntryError{Line: line, Field: field, FieldText: string(text[:min(len(text), maxBytes)]), Err: err})
}
