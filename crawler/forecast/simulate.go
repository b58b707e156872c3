package forecast

import (
	"container/heap"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

// A Crawl is what bounds a crawl as a whole. Zero is no limit, but for Workers.
type Crawl struct {
	Start   time.Time     // when the first request may begin
	Workers int           // visits at a time; at least 1
	Pages   int64         // to visit
	Bytes   int64         // to receive, those of Received too
	Time    time.Duration // from Start

	Received int64 // bytes, before the forecast begins

	RequestsPerSecond float64 // of all hosts together
	BytesPerSecond    float64 // likewise

	AddressSlots int           // visits at a time of one address
	AddressDelay time.Duration // from the end of a visit of an address to the start of the next
	Loopback     bool          // the two hold for loopback addresses, too
}

// A Host is what is left to visit of one host, and at what pace.
type Host struct {
	Name    string        // as politeness.Visit.Host
	Due     time.Time     // no request begins before
	Strikes int           // failures in a row, as back-off counts them
	Visit   time.Duration // how long a request takes
	Bytes   int64         // of the answer to a page
	Addr    netip.Addr    // zero: not known, and nobody shares it
	Origins []Origin

	// Policy returns the policy for the host at a moment.
	Policy func(time.Time) politeness.Policy
	// Pace returns the rest that its robots.txt files ask for at a moment, and when
	// they let visits begin, from that moment on.
	Pace func(time.Time) (rest time.Duration, opens time.Time)
}

// An Origin is the pages of one origin of a host, and what comes before them.
type Origin struct {
	Pages  int64 // to visit
	Robots File  // robots.txt
	TDMRep File  // tdmrep.json, which comes after it
}

// A File is one that must be asked for again when it is too old, before the next page.
// However short it holds, it does for the visit after its own.
type File struct {
	Fresh time.Time     // it is asked for again before the first visit after it
	TTL   time.Duration // for how long it holds then; 0: for good
	// Requests is how many it takes to have it: one more for each redirect, each at
	// the pace of the host. 0: one.
	Requests int64

	made int64 // of them, this time
}

// arrives makes one of the requests for the file, which ends at end, and reports whether
// it was the last.
func (f *File) arrives(end time.Time) bool {
	if f.made++; f.made < f.Requests {
		return false
	}
	f.made, f.Fresh = 0, end.Add(f.TTL)
	return true
}

// due reports whether the file comes first at a moment. served says whether there was
// a visit since it was asked for last.
func (f *File) due(at time.Time, served bool) bool { return served && f.TTL > 0 && !at.Before(f.Fresh) }

// An End says why a forecast goes no further.
type End uint8

// Ends.
const (
	Empty   End = iota // nothing is left to visit
	ByPages            // a limit of the crawl is reached
	ByBytes
	ByTime
	Never // what is left is never visited: the hours that are open do not meet
)

// A Tally is what a crawl does at one host, or at all.
type Tally struct {
	Pages  int64     // that are visited
	Robots int64     // robots.txt files asked for again
	TDMRep int64     // likewise, tdmrep.json files
	Bytes  int64     // of pages
	Left   int64     // pages that are not visited
	Last   time.Time // the end of the last visit
}

// horizon is how far a forecast looks ahead.
const horizon = 100 * 365 * 24 * time.Hour

// Play plays the crawl of hosts to its end, and returns what it does at each of
// them. It takes time in proportion to the requests, and memory to the hosts.
func (c Crawl) Play(hosts []Host) ([]Tally, End) {
	p := newPlay(c, hosts)
	end := Empty
	for len(p.queue) > 0 && end == Empty {
		end = p.step()
	}
	tallies := make([]Tally, len(hosts))
	for i := range p.all {
		tallies[i] = p.all[i].tally
		tallies[i].Left = p.all[i].left
	}
	return tallies, end
}

// A play is a forecast in the making.
type play struct {
	Crawl
	all       []guest
	queue     queue // of those that have pages left, by when they are due
	workers   lanes
	addresses map[netip.Addr]*address
	pages     int64
	bytes     int64
	request   time.Time // no request begins before: RequestsPerSecond
	spent     time.Time // likewise: BytesPerSecond
}

// A guest is a host that is played.
type guest struct {
	*Host
	address *address // nil: nobody shares it
	left    int64    // pages
	due     time.Time
	strikes int
	abreast int       // visits that have begun since the last rest
	next    time.Time // due after the rest that these earn
	turn    int       // of Origins
	served  bool      // there was a visit since the last robots.txt of that origin
	used    bool      // a page since its last tdmrep.json
	tally   Tally
	place   int // in the queue
}

func newPlay(c Crawl, hosts []Host) *play {
	p := &play{Crawl: c, all: make([]guest, len(hosts)), addresses: map[netip.Addr]*address{}, bytes: c.Received}
	p.workers = newLanes(max(c.Workers, 1), c.Start)
	for i := range hosts {
		g := &p.all[i]
		*g = guest{Host: &hosts[i], due: hosts[i].Due, strikes: hosts[i].Strikes, served: true, used: true}
		for _, o := range hosts[i].Origins {
			g.left += o.Pages
		}
		if g.left > 0 {
			g.place = len(p.queue)
			p.queue = append(p.queue, g)
		}
		g.address = p.addressOf(g.Addr)
	}
	heap.Init(&p.queue)
	return p
}

// step makes the next visit, or finds out that its host is due later.
func (p *play) step() End {
	g := p.queue[0]
	at := latest(g.due, p.workers.first(), p.request, p.spent)
	if at.Sub(p.Start) > horizon {
		return Never
	}
	if p.Time > 0 && at.Sub(p.Start) >= p.Time {
		return ByTime
	}
	if opens := g.opens(at); opens.After(at) {
		p.leave(g)
		g.due = opens
		heap.Fix(&p.queue, g.place)
		return Empty
	}
	if !p.enter(g, at) {
		return Empty
	}
	return p.visit(g, at)
}

// opens returns when g is within its hours, from at on.
func (g *guest) opens(at time.Time) time.Time {
	_, opens := g.Pace(at)
	return latest(opens, g.Policy(at).Window.Opens(at))
}

// visit visits the next page of g, or the file that must come first.
func (p *play) visit(g *guest, at time.Time) End {
	o := g.origin()
	forRobots := o.Robots.due(at, g.served)
	forTDMRep := !forRobots && o.TDMRep.due(at, g.used)
	switch {
	case forRobots, forTDMRep:
	case p.Pages > 0 && p.pages >= p.Pages:
		return ByPages
	case p.Bytes > 0 && p.bytes >= p.Bytes:
		return ByBytes
	}
	end := at.Add(g.Visit)
	p.occupy(g, at, end)
	switch {
	case forRobots:
		g.served = !o.Robots.arrives(end)
		g.tally.Robots++
	case forTDMRep:
		g.served, g.used = true, !o.TDMRep.arrives(end)
		g.tally.TDMRep++
	default:
		g.served, g.used = true, true
		o.Pages--
		g.left--
		g.turn++
		p.count(g, end)
	}
	g.tally.Last = latest(g.tally.Last, end)
	g.rest(at, end)
	if g.left == 0 {
		heap.Remove(&p.queue, g.place)
	} else {
		heap.Fix(&p.queue, g.place)
	}
	return Empty
}

// occupy takes what a visit needs from at to end.
func (p *play) occupy(g *guest, at, end time.Time) {
	p.workers.take(end)
	if g.address != nil {
		g.address.slots.take(end.Add(p.AddressDelay))
		p.leave(g)
	}
	if p.RequestsPerSecond > 0 {
		p.request = at.Add(seconds(1 / p.RequestsPerSecond))
	}
}

// count counts a page. As many bytes as flow in a second may come at once.
func (p *play) count(g *guest, end time.Time) {
	g.tally.Pages++
	g.tally.Bytes += g.Bytes
	p.pages++
	p.bytes += g.Bytes
	if p.BytesPerSecond > 0 {
		p.spent = latest(p.spent, end.Add(-time.Second)).Add(seconds(float64(g.Bytes) / p.BytesPerSecond))
	}
}

// origin returns whose turn it is: those with pages left take turns, and a
// robots.txt is followed by a page of its own.
func (g *guest) origin() *Origin {
	for {
		if o := &g.Origins[g.turn%len(g.Origins)]; o.Pages > 0 {
			return o
		}
		g.turn++
	}
}

// rest has the host rest after a visit. As many as its slots begin together,
// and rest together.
func (g *guest) rest(start, end time.Time) {
	delay, _ := g.Pace(end)
	rest := g.Policy(end).Next(politeness.Visit{Host: g.Name, Start: start, End: end, Status: 200, CrawlDelay: delay, Strikes: g.strikes})
	g.strikes = rest.Strikes
	g.next = latest(g.next, rest.Due)
	if g.abreast++; g.abreast < rest.Slots {
		return
	}
	g.due, g.abreast = g.next, 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func latest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(first) {
			first = t
		}
	}
	return first
}
