package sinks

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// diskFullRetryInterval is how often a write is tried again that found no room.
const diskFullRetryInterval = time.Second

// A diskFullRetrier has writes wait while the disk is full.
type diskFullRetrier struct {
	log        *slog.Logger // nil: slog.Default
	onDiskFull func(error)  // called with the error when a wait begins, with nil when it ends; may be nil
	mu         sync.Mutex   // held by the one that waits for all: see retryOneForAll
}

// retry calls write. While write fails for lack of room, retry waits and calls it again, until ctx
// is done.
func (d *diskFullRetrier) retry(ctx context.Context, write func() error) error {
	log, onDiskFull := cmp.Or(d.log, slog.Default()), d.onDiskFull
	if onDiskFull == nil {
		onDiskFull = func(error) {}
	}
	for isWaiting := false; ; isWaiting = true {
		err := write()
		if err == nil || !disk.IsFull(err) || ctx.Err() != nil {
			if isWaiting {
				onDiskFull(nil)
			}
			if isWaiting && err == nil {
				log.Info("the crawl goes on: the output can be written again")
			}
			return err
		}
		if !isWaiting {
			log.Error("the crawl pauses: the output cannot be written; it goes on by itself when there is room", "error", err)
			onDiskFull(err)
		}
		select {
		case <-time.After(diskFullRetryInterval):
		case <-ctx.Done():
		}
	}
}

// retryOneForAll is retry for writes of several goroutines: while there is no room, one waits for all.
func (d *diskFullRetrier) retryOneForAll(ctx context.Context, write func() error) error {
	err := write()
	if !disk.IsFull(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.retry(ctx, write)
}
