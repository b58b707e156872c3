package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"syscall"
	"time"
)

// diskFullRetryInterval is how often a write is tried again that found no room.
const diskFullRetryInterval = time.Second

// passing reports whether a write can succeed once there is room on the disk. After any
// other error (EIO, EROFS) the contents of the disk are unknown, and the run ends.
func passing(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// writeWhenPossible writes b to w, and while that fails for lack of room waits
// and goes on from where it came to, until ctx is done. It returns how much of
// b is left, with the reason.
func writeWhenPossible(
	ctx context.Context, w io.Writer, b []byte, log *slog.Logger, paused func(error),
) (left int, err error) {
	err = whenPossible(ctx, log, paused, func() error {
		n, err := w.Write(b)
		b = b[n:]
		return err
	})
	return len(b), err
}

// whenPossible calls write. While write fails for lack of room, whenPossible waits and
// calls it again, until ctx is done. It calls paused, unless that is nil, with the
// error when the wait begins, and with nil when it ends.
func whenPossible(ctx context.Context, log *slog.Logger, paused func(error), write func() error) error {
	if paused == nil {
		paused = func(error) {}
	}
	for waits := false; ; waits = true {
		err := write()
		if err == nil || !passing(err) || ctx.Err() != nil {
			if waits {
				paused(nil)
			}
			if waits && err == nil {
				log.Info("the crawl goes on: the output can be written again")
			}
			return err
		}
		if !waits {
			log.Error("the crawl pauses: the output cannot be written; it goes on by itself when there is room", "error", err)
			paused(err)
		}
		select {
		case <-time.After(diskFullRetryInterval):
		case <-ctx.Done():
		}
	}
}
