package sitemap

import (
	"errors"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A draft is an entry as far as it was read.
type draft struct {
	loc       []byte
	spare     []byte // for want of loc
	void      error  // why loc is unusable
	line      int    // of loc, else of spare
	date      time.Time
	priority  float64
	frequency string
}

// reset empties the draft for the next entry.
func (d *draft) reset() {
	*d = draft{loc: d.loc[:0], spare: d.spare[:0], priority: DefaultPriority}
}

// locate gives the draft its location, or what there is of it and why that
// will not do.
func (d *draft) locate(loc []byte, line int, void error) {
	d.loc, d.line, d.void = append(d.loc[:0], loc...), line, void
}

// text returns the location as the file has it.
func (d *draft) text() []byte {
	if len(d.loc) > 0 {
		return d.loc
	}
	return d.spare
}

// A sink takes drafts and hands entries on.
type sink struct {
	Options
	base    decorum.URL
	site    string // with what the URLs of the sitemap's origin begin
	place   string // with what those of its directory do
	left    int    // entries
	found   int    // locations that are URLs
	yield   func(Entry) error
	stopped bool // yield returned an error
}

func newSink(base decorum.URL, options Options, yield func(Entry) error) *sink {
	s := &sink{Options: options, base: base, left: options.Entries, yield: yield}
	if !base.IsZero() {
		path, _, _ := strings.Cut(base.PathAndQuery(), "?")
		s.site = base.Origin().String() + "/"
		s.place = base.Origin().String() + path[:strings.LastIndexByte(path, '/')+1]
	}
	return s
}

// put hands the draft on, if it names a URL that the sitemap may list.
func (s *sink) put(d *draft, index bool) error {
	u, err := s.locate(d)
	within := s.within(u, index)
	if err == nil && s.Strict && !within && (s.Vouched == nil || !s.Vouched(u.Origin())) {
		err = ErrPlace
	}
	switch {
	case err != nil:
		s.flaw(d.line, location, d.text(), err)
		return nil // one bad location does not spoil the others
	case s.left == 0:
		return ErrLimit
	}
	s.left--
	err = s.yield(Entry{
		URL: u, Index: index, Within: within,
		LastMod: d.date, Priority: d.priority, ChangeFreq: d.frequency,
	})
	s.stopped = err != nil
	return err
}

// location is what flaws call the element that says where an entry is.
const location = "location"

var errMissing = errors.New("there is none")

// locate returns the URL that the draft names. For want of a location proper
// only a whole URL will do: anything else may be any text.
func (s *sink) locate(d *draft) (u decorum.URL, err error) {
	switch {
	case d.void != nil:
		return u, d.void
	case len(d.loc) > 0:
		u, err = s.base.ResolveBytes(d.loc)
	case len(d.spare) > 0:
		u, err = decorum.URL{}.ResolveBytes(d.spare)
	default:
		return u, errMissing
	}
	if err != nil {
		return u, cause(err)
	}
	s.found++
	if len(u.String()) > s.URL {
		return u, ErrLimit
	}
	return u, nil
}

// cause returns why something is no URL: a flaw says the rest.
func cause(err error) error {
	if e := new(decorum.Error); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// within reports whether the sitemap's place entitles it to list u.
func (s *sink) within(u decorum.URL, index bool) bool {
	if index {
		return s.site != "" && strings.HasPrefix(u.String(), s.site)
	}
	return s.place != "" && strings.HasPrefix(u.String(), s.place)
}

// flaw tells of something that cannot be used.
func (s *sink) flaw(line int, what string, text []byte, err error) {
	if s.Flaw == nil {
		return
	}
	const shown = 256
	s.Flaw(Flaw{Line: line, What: what, Text: string(text[:min(len(text), shown)]), Err: err})
}
