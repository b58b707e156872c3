package daemon

import (
	"context"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// consult lets do work with the project's rooms and the state that they are on,
// whatever the project does meanwhile: those of the run that goes on, or some
// without a crawl.
// ctx is done, too, when the state is out of reach: nobody waits for that.
func (r *runner) consult(ctx context.Context, do func(context.Context, *rooms, stores) error) error {
	if r.lost() != nil {
		return r.unavailable(nil)
	}
	files, err := r.vault.enter()
	if err != nil {
		return r.unavailable(err)
	}
	defer r.vault.leave()
	rooms, err := r.roomsOn(files)
	if err != nil {
		return err
	}
	ctx, stop := r.withinReach(ctx)
	defer stop()
	if err = do(ctx, rooms, files); err != nil {
		return r.unavailable(err)
	}
	return nil
}

// roomsOn returns the project's rooms on files that are open.
func (r *runner) roomsOn(files stores) (*rooms, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ed := r.orders.edition
	switch {
	case r.rooms != nil && r.rooms.files == files && (r.interrupt != nil || r.roomsOf == ed):
		return r.rooms, nil
	case ed == nil:
		return nil, api.Conflict("%s has no project file that makes sense: %s", r.name, r.orders.may())
	}
	rooms, err := ground{
		files: files, confined: ed.confined, log: r.app.log, waits: true,
		discovered: r.metrics.Discovered, refused: r.metrics.Refused,
	}.open(ed.project, ed.roots, nil)
	if err == nil {
		r.rooms, r.roomsOf = rooms, ed
	}
	return rooms, err
}

// occupy makes rooms, of an edition, those of the project.
func (r *runner) occupy(rooms *rooms, ed *edition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rooms, r.roomsOf = rooms, ed
}

// vacate lets go of the rooms, and of all that a crawl had in memory.
func (r *runner) vacate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rooms, r.roomsOf = nil, nil
}

// stir has a project go on that had nothing left: URLs were added to it, by way of
// rooms. A run that knows of them goes on itself, unless it was at its end.
func (r *runner) stir(rooms *rooms) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupt != nil && r.rooms == rooms {
		r.stirred = true
		return
	}
	r.command(func(*orders) {})
}
