package sitemap

import (
	"bytes"
	"errors"
	"io"
	"net/mail"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A draft is an entry as far as it was read.
type draft struct {
	loc       []byte
	spare     []byte // for want of loc
	date      time.Time
	priority  float64
	frequency string
}

// reset empties the draft for the next entry.
func (d *draft) reset() {
	*d = draft{loc: d.loc[:0], spare: d.spare[:0], priority: DefaultPriority}
}

// A sink takes drafts and hands entries on.
type sink struct {
	base    decorum.URL
	left    int // entries
	yield   func(Entry) error
	stopped bool // yield returned an error
}

// put hands the draft on, if it names a URL.
func (s *sink) put(d *draft, index bool) error {
	u, err := s.locate(d)
	if err != nil {
		return nil // one bad location does not spoil the others
	}
	if s.left == 0 {
		return ErrLimit
	}
	s.left--
	err = s.yield(Entry{
		URL: u, Index: index,
		LastMod: d.date, Priority: d.priority, ChangeFreq: d.frequency,
	})
	s.stopped = err != nil
	return err
}

// locate returns the URL that the draft names.
func (s *sink) locate(d *draft) (decorum.URL, error) {
	if len(d.loc) > 0 {
		return s.base.ResolveBytes(d.loc)
	}
	return decorum.ParseURL(string(d.spare))
}

// readText reads a list of URLs, one a line. They must be complete: anything
// else may be any text.
func readText(in *input, s *sink) error {
	var line []byte
	var found int
	for {
		b, whole, err := in.chunk('\n')
		line = append(line, b[:min(len(b), maxValue-len(line))]...)
		if whole || err == io.EOF {
			d := draft{spare: bytes.TrimSpace(line), priority: DefaultPriority}
			before := s.left
			if len(line) < maxValue {
				if err := s.put(&d, false); err != nil {
					return err
				}
			}
			found += before - s.left
			line = line[:0]
		}
		if errors.Is(err, io.EOF) && found == 0 {
			return ErrNotSitemap
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// parseDate reads the W3C's date forms, with or without the time zone they
// demand, and those of RSS. It returns the zero time for anything else.
func parseDate(s string) time.Time {
	for _, layout := range [...]string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02", "2006-01-02T15:04Z07:00", "2006-01", "2006",
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	if t, err := mail.ParseDate(s); err == nil {
		return t.UTC()
	}
	return time.Time{}
}

// parsePriority returns the priority, or the default if s is none.
func parsePriority(s string) float64 {
	p, err := strconv.ParseFloat(s, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return DefaultPriority
	}
	return p
}

// parseFrequency returns the frequency, or nothing if it is none of the
// protocol's.
func parseFrequency(s []byte) string {
	for _, f := range [...]string{"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"} {
		if bytes.EqualFold(s, []byte(f)) {
			return f
		}
	}
	return ""
}
