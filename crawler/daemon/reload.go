package daemon

import (
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// unchangedReload returns what is known of the file with a stamp; nil if that is news, or
// if the file made no sense: that may be for the sake of another file, which it names
// and which is there now.
func (r *runner) unchangedReload(stamp string) *api.ReloadResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stamp != stamp || r.orders.gone || r.orders.fault != "" {
		return nil
	}
	return &api.ReloadResult{Project: r.name, Change: "none"}
}

// follow makes the project one of another edition: a run that goes on is ended in
// order, and goes on as that says. It is not if the file is again what it was
// before it made no sense.
func (r *runner) follow(ed *edition, stamp string) api.ReloadResult {
	result := api.ReloadResult{Project: r.name, Change: "changed"}
	if r.mend(stamp) {
		result.Change = "none"
		return result
	}
	r.change(func(o *orders) {
		if o.edition == nil {
			result.Change = "new"
		}
		o.edition, o.fault, o.gone, r.stamp, r.followed = ed, "", false, stamp, stamp
	})
	r.app.log.Info("the project file is followed")
	r.hub.tell(api.Event{Type: "file", Project: r.name, Message: result.Change})
	return result
}

// mend takes back that the file is not followed, if its stamp is that of the
// edition that is.
func (r *runner) mend(stamp string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.followed != stamp || r.orders.gone {
		return false
	}
	r.orders.fault, r.stamp = "", stamp
	return true
}

// refuse has the project go on as it was: its file makes no sense. last is the
// edition for a project that has followed none in this process; nil: there is none.
func (r *runner) refuse(why, stamp string, last *edition) api.ReloadResult {
	result := api.ReloadResult{Project: r.name, Change: "refused", Error: why}
	r.mu.Lock()
	same, idle := r.stamp == stamp && r.orders.fault == why, r.orders.edition == nil && (last != nil || r.orders.version == 0) || r.orders.gone
	r.orders.fault, r.stamp = why, stamp
	r.mu.Unlock()
	if same && !idle {
		return result
	}
	if idle {
		r.change(func(o *orders) {
			o.gone = false
			if o.edition == nil {
				o.edition = last
			}
		})
	}
	if !same {
		outcome := "the project goes on as it was"
		if idle && last == nil {
			outcome = "the project waits for one that makes sense"
		}
		r.app.log.Error("the project file is not followed; "+outcome, "error", why)
		r.hub.tell(api.Event{Type: "file", Project: r.name, Message: why})
	}
	return result
}

// lose stops the project, whose file is gone. Its state is kept, and if it ran it
// goes on when the file is back. last is the edition to look into its state by.
func (r *runner) lose(last func() *edition) api.ReloadResult {
	result := api.ReloadResult{Project: r.name, Change: "gone"}
	r.mu.Lock()
	first, known := r.orders.version == 0, r.orders.gone
	r.mu.Unlock()
	switch {
	case first:
		ed := last()
		r.change(func(o *orders) { o.edition = ed })
	case known:
		return result
	default:
		r.change(func(o *orders) { o.gone = true })
	}
	r.app.log.Warn("the project file is gone: the project is stopped, and its state kept")
	r.hub.tell(api.Event{Type: "file", Project: r.name, Message: "the project file is gone"})
	return result
}
