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
	case e.Class >= Classes:
		return fmt.Errorf("%v: class %d, the highest is %d", e.URL, e.Class, Classes-1)
	case e.Depth < 0 || e.Attempt < 0 || e.Redirects < 0:
		return fmt.Errorf("%v: depth, attempt or redirects are negative", e.URL)
	case e.Page != nil && max(len(e.Page.ETag), len(e.Page.LastModified)) > MaxValidator:
		return fmt.Errorf("%v: a validator is longer than %d bytes", e.URL, MaxValidator)
	case len(e.Context) > MaxContext:
		return fmt.Errorf("%v: context of %d bytes, the most is %d", e.URL, len(e.Context), MaxContext)
	case e.AsFound && e.Found.IsZero(), !e.Found.IsZero() && e.Found.Origin() != e.URL.Origin():
		return fmt.Errorf("%v: found as %q, which is no URL of the same origin", e.URL, e.Found)
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
	if a.Host != nil && len(a.Host.Memo) > MaxMemo {
		return fmt.Errorf("memo of %v: %d bytes, the most is %d", a.Lease.URL.Origin().Host(), len(a.Host.Memo), MaxMemo)
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
