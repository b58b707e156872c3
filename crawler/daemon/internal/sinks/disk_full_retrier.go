package sinks

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// diskFullRetryInterval is the time between two attempts at a write on a full disk.
const diskFullRetryInterval = time.Second

// A diskFullRetrier repeats writes while the disk is full.
type diskFullRetrier struct {
	log        *slog.Logger // nil: slog.Default
	onDiskFull func(error)  // called with the error when a wait begins, with nil when it ends; may be nil
	mu         sync.Mutex   // serializes retryOneForAll: one goroutine retries, logs and calls onDiskFull
}

// retry calls write. While write fails because the disk is full, retry calls it again every
// diskFullRetryInterval, until ctx is done. It returns the error of the last call.
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
				log.Info("the crawl continues: the output can be written again")
			}
			return err
		}
		if !isWaiting {
			log.Error("the crawl pauses: the output cannot be written; it continues by itself when the disk has space",
				"error", err)
			onDiskFull(err)
		}
		select {
		case <-time.After(diskFullRetryInterval):
		case <-ctx.Done():
		}
	}
}

// retryOneForAll is retry for writes of several goroutines. While the disk is full, one goroutine
// retries, and the others wait for it.
func (d *diskFullRetrier) retryOneForAll(ctx context.Context, write func() error) error {
	err := write()
	if !disk.IsFull(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.retry(ctx, write)
}
