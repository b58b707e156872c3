package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A Player replays the first run of a ledger. The crawl that is put together for it
// has the Player's Store, clock (Now), and the Player for the transport of its fetcher.
type Player struct {
	Store *Store
	// Run is what the crawl that is put together works by, as a ledger says it.
	Run ledger.Run
	// Differ is told of each difference.
	Differ func(Difference)

	records  iter.Seq2[*ledger.Record, error]
	answers  *Answers
	clock    clock
	set      time.Duration // by how much that of the machine was, since the first record
	crawl    *crawler.Crawler
	recorded map[string][]*asked // requests that were not replayed yet, by URL
	foundOn  map[string]string   // what a URL was found on, by the ledger
	led      map[string][]led    // and where pages led to
	open     map[int64]*visit    // requests that wait for their answer, by number
	pending  map[string]*visit   // visits that the ledger does not show yet, by host
	calling  *visit              // the one visit that goes on
	report   Report
	fault    error // of a record that cannot be replayed
}

// A Difference is a decision that was not made again.
type Difference struct {
	RecordNumber int64  // of the ledger; 0: none shows it
	URL          string // that it is about
	What         string // what was recorded, and what would be now
}

// String says it.
func (d Difference) String() string {
	if d.RecordNumber == 0 {
		return d.URL + ": " + d.What
	}
	return fmt.Sprintf("record %d, %s: %s", d.RecordNumber, d.URL, d.What)
}

// A Report is what came of a replay.
type Report struct {
	Requests    int64 // of the ledger
	Refusals    int64 // of the ledger
	Verdicts    int64 // derived again, and the same
	Differences int64 // decisions that were not made again
	Withheld    int64 // pages of which only the header is archived: the ledger says where they led
	Interrupted int64 // requests without an answer: the crawl was killed, or goes on
	Later       int64 // records of later runs, which are not replayed
}

// An asked is a request of the ledger.
type asked struct {
	*ledger.Request
	n      int64
	answer *ledger.Response // nil: none is recorded
}

// A visit is a step of the crawl that has come to its request.
type visit struct {
	ticket crawler.Ticket
	asked  *asked     // what the ledger has of it
	slot   slot       // when it is made
	bare   bool       // its content is not archived
	begun  chan bool  // the ticket is there
	answer chan error // how it goes on: nil: with the archived answer
	done   chan error // how the step ended
}

// A slot is when the ledger shows a request of a host.
type slot struct{ start, end time.Time }

// New returns a Player of the records of a ledger, which are read twice. Its clock is
// at the beginning of the run.
func New(records iter.Seq2[*ledger.Record, error], answers *Answers) (*Player, error) {
	p := &Player{records: records, answers: answers,
		recorded: map[string][]*asked{}, foundOn: map[string]string{}, led: map[string][]led{}, open: map[int64]*visit{}, pending: map[string]*visit{}}
	p.Store = newStore(p.awaited)
	return p, p.load()
}

// Play takes the crawl through the records. plant plants its seeds.
func (p *Player) Play(ctx context.Context, c *crawler.Crawler, plant func(context.Context) error) (Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.attach(c)
	if err := c.Prepare(); err != nil {
		return p.report, err
	}
	runs := 0
	for r, err := range p.records {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return p.report, err
		}
		if r.Run != nil {
			runs++
		}
		if runs > 1 {
			break
		}
		if r.ClockChange != nil {
			p.set += r.ClockChange.Delta()
		}
		p.clock.set(r.Time.Add(-p.set))
		if r.Run != nil {
			p.compareRun(r)
			err = plant(ctx)
		} else {
			err = p.replayRecord(ctx, r)
		}
		if err != nil {
			return p.report, err
		}
	}
	p.report.Interrupted = int64(len(p.open))
	p.unasked()
	return p.report, p.abandon()
}

// attach has the visits of the crawl wait for their answers.
func (p *Player) attach(c *crawler.Crawler) {
	p.crawl = c
	c.Fetcher = fetcher{p, c.Fetcher}
	visited := c.Hooks.Visited
	c.Hooks.Visited = func(v *crawler.Visit) {
		p.compare(v)
		p.fault = errors.Join(p.fault, p.lead(v))
		if visited != nil {
			visited(v)
		}
	}
}

// replayRecord replays one record.
func (p *Player) replayRecord(ctx context.Context, r *ledger.Record) error {
	switch {
	case r.Request != nil:
		p.report.Requests++
		return p.request(ctx, r)
	case r.Response != nil:
		return p.answered(r)
	case r.Refusal != nil:
		p.report.Refusals++
		return p.refusal(ctx, r)
	}
	return nil
}

// request has the crawl make its next request to the host of a recorded one. What
// it refuses before costs no request, and no time.
func (p *Player) request(ctx context.Context, r *ledger.Record) error {
	u, err := decorum.ParseURL(r.Request.URL)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	for {
		v, err := p.next(ctx, u.Origin().Host(), nil)
		switch {
		case errors.Is(err, errNothing):
			p.differ(r.Number, r.Request.URL, "it was asked for, and would not be: %v", err)
			return nil
		case err != nil:
			return err
		case v == nil:
			continue
		}
		if p.take(v) {
			v.slot.start = p.Now()
			p.open[r.Number] = v
			if url := v.ticket.URL().String(); url != r.Request.URL {
				p.differ(r.Number, r.Request.URL, "it was asked for, and in its place would be %s", url)
			}
			return nil
		}
		p.differ(0, v.ticket.URL().String(), "it would be asked for, and never was")
		if err := p.goOn(v, errNeverAsked); err != nil {
			return err
		}
	}
}

// take finds what the ledger has of a visit, and false if it has none.
func (p *Player) take(v *visit) bool {
	url := v.ticket.URL().String()
	rest := p.recorded[url]
	if len(rest) == 0 {
		return false
	}
	v.asked, p.recorded[url] = rest[0], rest[1:]
	return true
}

// answered hands an answer over to the visit that waits for it.
func (p *Player) answered(r *ledger.Record) error {
	v := p.open[r.Response.RequestNumber]
	if v == nil {
		return nil // its request was not made again
	}
	delete(p.open, r.Response.RequestNumber)
	v.slot.end = r.Response.EndedAt.Add(-p.set)
	return p.goOn(v, nil)
}

// refusal has the crawl refuse what was refused.
func (p *Player) refusal(ctx context.Context, r *ledger.Record) error {
	u, err := decorum.ParseURL(r.Refusal.URL)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	host := u.Origin().Host()
	refused := false
	v, err := p.next(ctx, host, func(l storage.Lease, why error) { refused = p.compareRefusal(r, l, why) })
	switch {
	case errors.Is(err, errNothing):
		p.differ(r.Number, r.Refusal.URL, "it was refused, and would not be asked about: %v", err)
	case err != nil:
		return err
	case v != nil:
		p.pending[host] = v
		p.differ(r.Number, r.Refusal.URL, "it was refused, and in its place %s would be asked for", v.ticket.URL())
	case !refused:
		p.differ(r.Number, r.Refusal.URL, "it was refused, and would not be")
	}
	return nil
}

// next takes the next URL of a host through the house, as far as to its request. It
// returns nil if there comes none of it, and errNothing if the host has none.
func (p *Player) next(ctx context.Context, host string, refused func(storage.Lease, error)) (*visit, error) {
	if v := p.pending[host]; v != nil {
		delete(p.pending, host)
		return v, nil
	}
	before := p.crawl.Hooks.Refused
	p.crawl.Hooks.Refused = refused
	defer func() { p.crawl.Hooks.Refused = before }()
	v := &visit{begun: make(chan bool, 1), answer: make(chan error), done: make(chan error, 1)}
	p.Store.turn, p.calling = host, v
	go func() { v.done <- p.crawl.Step(ctx) }()
	select {
	case <-v.begun:
		return v, nil
	case err := <-v.done:
		return nil, err
	}
}

// goOn lets a visit go on, with the archived answer or without one, to its end.
func (p *Player) goOn(v *visit, why error) error {
	p.calling = v
	v.answer <- why
	return errors.Join(<-v.done, p.fault)
}

// abandon ends the visits of which the ledger has no answer.
func (p *Player) abandon() (err error) {
	for _, waiting := range []iter.Seq[*visit]{values(p.open), values(p.pending)} {
		for v := range waiting {
			v.asked = nil
			err = errors.Join(err, p.goOn(v, errNeverAsked))
		}
	}
	return err
}

func values[K comparable](m map[K]*visit) iter.Seq[*visit] {
	return func(yield func(*visit) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func (p *Player) differ(record int64, url, format string, args ...any) {
	p.report.Differences++
	if p.Differ != nil {
		p.Differ(Difference{record, url, fmt.Sprintf(format, args...)})
	}
}
