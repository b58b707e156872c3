package storage

import (
	"errors"
	"fmt"
)

// Check returns an error if no Store may keep the entry.
func (e *Entry) Check() error {
	switch {
	case e.URL.IsZero():
		return errors.New("entry without a URL")
	case e.Class >= NumClasses:
		return fmt.Errorf("%v: class %d, the highest is %d", e.URL, e.Class, NumClasses-1)
	case e.Depth < 0 || e.FailedAttempts < 0 || e.Redirects < 0:
		return fmt.Errorf("%v: depth, attempt or redirects are negative", e.URL)
	case e.History != nil && max(len(e.History.ETag), len(e.History.LastModified)) > MaxValidatorBytes:
		return fmt.Errorf("%v: a validator is longer than %d bytes", e.URL, MaxValidatorBytes)
	case len(e.Context) > MaxContextBytes:
		return fmt.Errorf("%v: context of %d bytes, the most is %d", e.URL, len(e.Context), MaxContextBytes)
	case e.UseOriginal && e.Original.IsZero(), !e.Original.IsZero() && e.Original.Origin() != e.URL.Origin():
		return fmt.Errorf("%v: found as %q, which is no URL of the same origin", e.URL, e.Original)
	}
	return e.checkRequest()
}

// CheckEntries returns an error if no Store may add one of the entries.
func CheckEntries(entries []Entry) error {
	for i := range entries {
		if err := entries[i].Check(); err != nil {
			return fmt.Errorf("add: %w", err)
		}
	}
	return nil
}

// Check returns an error if no Store may take the ack.
func (a *Ack) Check() error {
	if a.Host != nil && len(a.Host.Stats) > MaxStatsBytes {
		return fmt.Errorf("memo of %v: %d bytes, the most is %d", a.Lease.URL.Origin().Host(), len(a.Host.Stats), MaxStatsBytes)
	}
	return a.Lease.Check()
}

// CheckAcks returns an error if no Store may take one of the acks.
func CheckAcks(acks []Ack) error {
	for i := range acks {
		if err := acks[i].Check(); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
	return nil
}
