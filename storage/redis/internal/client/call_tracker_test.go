package client

import (
	"context"
	"errors"
	"testing"

	"github.com/decorum-crawler/decorum/storage"
)

// close cancels a call that runs, and calls last after that call has ended. No call begins afterwards.
func TestCallTracker(t *testing.T) {
	calls := newCallTracker()
	ctx, end, err := calls.BeginCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended, closed := false, make(chan error)
	go func() {
		closed <- calls.close(func() error {
			if !ended {
				t.Error("last is called while a call runs")
			}
			return nil
		})
	}()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("the call is canceled with %v, want %v", err, storage.ErrClosed)
	}
	ended = true
	end()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, _, err := calls.BeginCall(t.Context()); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("a call begins with %v after close, want %v", err, storage.ErrClosed)
	}
	if err := calls.close(func() error { t.Error("closed twice"); return nil }); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("the second close returns %v, want %v", err, storage.ErrClosed)
	}
}

// The context of a call is done when its parent is. A call with a done context does not begin.
func TestCallOfDoneContext(t *testing.T) {
	calls := newCallTracker()
	parent, cancel := context.WithCancel(t.Context())
	ctx, end, err := calls.BeginCall(parent)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-ctx.Done()
	end()
	if _, _, err := calls.BeginCall(parent); !errors.Is(err, context.Canceled) {
		t.Errorf("a call begins with %v, want %v", err, context.Canceled)
	}
	if err := calls.close(func() error { return nil }); err != nil {
		t.Error(err)
	}
}
