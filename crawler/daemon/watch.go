package daemon

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How project files are watched.
const (
	quiet     = 200 * time.Millisecond // an editor writes a file in several steps
	unquiet   = 2 * time.Second        // for so long at most they are waited for
	lookEvery = 30 * time.Second       // at a folder that may not tell of changes: on a network, say
)

// watch follows the project files as they change, until ctx is done.
func (s *supervisor) watch(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.app.log.Warn("the folder of project files is looked at now and then only", "every", lookEvery, "error", err)
		w = &fsnotify.Watcher{} // tells nothing
	} else {
		defer w.Close()
	}
	look := time.NewTimer(0) // what changed before the watch began is seen, too
	defer look.Stop()
	var first time.Time // of the changes that were not looked at
	for {
		select {
		case e := <-w.Events:
			if e.Op == fsnotify.Chmod {
				continue
			}
		case <-w.Errors: // changes were missed
		case <-look.C:
			if err == nil {
				_ = w.Add(s.folder) // again and again: it may be another folder of that name
			}
			s.scan()
			first = time.Time{}
			look.Reset(lookEvery)
			continue
		case <-ctx.Done():
			return
		}
		if first.IsZero() {
			first = time.Now()
		}
		look.Reset(min(quiet, time.Until(first.Add(unquiet))))
	}
}
