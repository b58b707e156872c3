package sinks

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// diskFullRetryInterval is how often a write is tried again that found no room.
const diskFullRetryInterval = time.Second

// writeRetryingDiskFull writes b to w, and while that fails for lack of room waits
// and goes on from where it came to, until ctx is done. It returns how much of
// b is left, with the reason.
func writeRetryingDiskFull(
	ctx context.Context, w io.Writer, b []byte, log *slog.Logger, onDiskFull func(error),
) (unwritten int, err error) {
	err = retryWhileDiskFull(ctx, log, onDiskFull, func() error {
		n, err := w.Write(b)
		b = b[n:]
		return err
	})
	return len(b), err
}

// retryWhileDiskFull calls write. While write fails for lack of room, retryWhileDiskFull waits and
// calls it again, until ctx is done. It calls paused, unless that is nil, with the
// error when the wait begins, and with nil when it ends.
func retryWhileDiskFull(ctx context.Context, log *slog.Logger, onDiskFull func(error), write func() error) error {
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
