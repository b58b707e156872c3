package storage

import (
	"errors"
	"fmt"
)

// Validate returns an error if no Store may keep the entry.
func (e *Entry) Validate() error {
	switch {
	case e.URL.IsZero():
		return errors.New("entry without a URL")
	case e.PriorityClass >= NumClasses:
		return fmt.Errorf("%v: class %d, the highest is %d", e.URL, e.PriorityClass, NumClasses-1)
	case e.Depth < 0 || e.FailedAttempts < 0 || e.Redirects < 0:
		return fmt.Errorf("%v: depth, attempt or redirects are negative", e.URL)
	case e.VisitHistorySummary != nil && max(len(e.VisitHistorySummary.ETag), len(e.VisitHistorySummary.LastModified)) > MaxValidatorBytes:
		return fmt.Errorf("%v: a validator is longer than %d bytes", e.URL, MaxValidatorBytes)
	case len(e.CallbackData) > MaxCallbackDataBytes:
		return fmt.Errorf("%v: context of %d bytes, the most is %d", e.URL, len(e.CallbackData), MaxCallbackDataBytes)
	case e.UseUncleanedURL && e.UncleanedURL.IsZero(), !e.UncleanedURL.IsZero() && e.UncleanedURL.Origin() != e.URL.Origin():
		return fmt.Errorf("%v: found as %q, which is no URL of the same origin", e.URL, e.UncleanedURL)
	}
	return e.checkRequest()
}

// ValidateEntries returns an error if no Store may add one of the entries.
func ValidateEntries(entries []Entry) error {
	for i := range entries {
		if err := entries[i].Validate(); err != nil {
			return fmt.Errorf("add: %w", err)
		}
	}
	return nil
}

// validate returns an error if no Store may take the ack.
func (a *Ack) validate() error {
	if a.HostState != nil && len(a.HostState.EncodedStats) > MaxStatsBytes {
		return fmt.Errorf("memo of %v: %d bytes, the most is %d", a.Lease.URL.Origin().Host(), len(a.HostState.EncodedStats), MaxStatsBytes)
	}
	return a.Lease.Validate()
}

// ValidateAcks returns an error if no Store may take one of the acks.
func ValidateAcks(acks []Ack) error {
	for i := range acks {
		if err := acks[i].validate(); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
	return nil
}
