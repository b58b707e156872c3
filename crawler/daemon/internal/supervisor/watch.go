package supervisor

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How project files are watched.
const (
	settleDelay    = 200 * time.Millisecond // an editor writes a file in several steps
	maxSettleDelay = 2 * time.Second        // the wait for further steps is no longer
	rescanInterval = 30 * time.Second       // for folders without notifications of changes, as on a network
)

// watch calls reload when files in the folder have changed, and every rescanInterval, until ctx
// is done.
func (d *projectFolder) watch(ctx context.Context, reload func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		d.log.Warn("the folder of project files is looked at now and then only", "every", rescanInterval, "error", err)
		w = &fsnotify.Watcher{} // sends no events
	} else {
		defer w.Close()
	}
	// Each change puts off the rescan by settleDelay, up to maxSettleDelay after the first.
	rescan := time.NewTimer(0) // what changed before the watch began is seen, too
	defer rescan.Stop()
	var firstChange time.Time // of the changes that were not looked at
	for {
		select {
		case e := <-w.Events:
			if e.Op == fsnotify.Chmod {
				continue
			}
		case <-w.Errors: // changes were missed
		case <-rescan.C:
			if err == nil {
				_ = w.Add(d.path) // again and again: it may be another folder of that name
			}
			reload()
			firstChange = time.Time{}
			rescan.Reset(rescanInterval)
			continue
		case <-ctx.Done():
			return
		}
		if firstChange.IsZero() {
			firstChange = time.Now()
		}
		rescan.Reset(min(settleDelay, time.Until(firstChange.Add(maxSettleDelay))))
	}
}
