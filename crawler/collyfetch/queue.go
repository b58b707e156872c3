package collyfetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/decorum-crawler/decorum/frontier"
)

// RunQueue is q.Run(c) of a colly program, where q is a *queue.Queue or does the same: it moves the
// requests of q into the crawl, and returns when these and all URLs that follow from them have been
// visited. Callbacks may add to q. The requests have the callbacks of the collector that was wrapped.
// RunQueue returns the error of Run, or of q.Run. Requests that leave q are in the state of the crawl
// alone, also if the storage of q is durable: set StateDir to keep them.
//
// The limits of a run hold for the whole queue. If a limit, ctx or an error ends the crawl early,
// callbacks may still add to q: the next RunQueue or Run continues, and Close moves the rest of q into
// the state of the crawl. After RunQueue has returned nil, AddRequest blocks, as it does in colly
// after q.Run; AddURL, and another RunQueue, do not. To end a crawl early, cancel ctx: after
// Queue.Stop, or an error of the storage of q, AddRequest blocks, and RunQueue waits for the callback.
//
// If the collector is not Async, and WrapOptions.Settings.Workers is 0, as many callbacks run at a
// time as a *queue.Queue has threads.
func (c *Crawl) RunQueue(ctx context.Context, q interface{ Run(*colly.Collector) error }) error {
	if q == nil {
		return errors.New("collyfetch: RunQueue: the queue is nil")
	}
	if !c.isRunning.CompareAndSwap(false, true) {
		return errAlreadyRunning
	}
	defer c.isRunning.Store(false)
	if err := c.rereadSettings(); err != nil {
		return err
	}
	isSame := func(o *queueRun) bool { return reflect.TypeOf(q).Comparable() && o.queue == q }
	if !slices.ContainsFunc(c.queueRuns, isSame) {
		c.queueRuns = append(c.queueRuns, newQueueRun(c.Collector, q))
	}
	return c.runWithQueues(ctx)
}

// runWithQueues crawls until neither the frontier nor a queue has anything left, as one run. Its
// callers have set isRunning and called rereadSettings.
func (c *Crawl) runWithQueues(ctx context.Context) error {
	defer c.hasRequestedPage.Store(false)
	defer c.unvisitedRequests.Store(0)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var idleErr error
	for run, isFirst := c.run, true; ; run, isFirst = c.crawler.Continue, false {
		// Let the queues begin to fill the frontier.
		hasMore, err := c.pullFromQueues(ctx)
		switch {
		case err != nil:
			return errors.Join(idleErr, err)
		case !hasMore && !isFirst:
			return idleErr
		}
		// Crawl until the frontier is empty, or all that is left must wait.
		stopWatching := c.cancelAtQueueEnd(cancel)
		idleErr = run(ctx)
		stopWatching()
		if idleErr != nil && !errors.Is(idleErr, frontier.ErrOnlySuspendedLeft) &&
			!errors.Is(idleErr, frontier.ErrOnlyRevisitsLeft) {
			return idleErr
		}
		for _, r := range c.queueRuns {
			r.releaseIfIdle()
		}
	}
}

// pullFromQueues starts queues that are not empty, and waits until each running queue has added to the
// frontier or has ended. It returns whether one has added, and drops those that have ended.
func (c *Crawl) pullFromQueues(ctx context.Context) (hasMore bool, err error) {
	c.queueRuns = slices.DeleteFunc(c.queueRuns, func(r *queueRun) bool {
		if !r.isStarted && r.isEmpty() {
			return false // a callback may add to it
		}
		isHeld, queueErr := r.wait(ctx)
		hasMore, err = hasMore || isHeld, errors.Join(err, queueErr)
		return r.endedCtx.Err() != nil
	})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return hasMore, err
}

// cancelAtQueueEnd makes a queue that ends cancel the run, until the returned func is called: a queue
// ends during a run because it was stopped or its storage failed.
func (c *Crawl) cancelAtQueueEnd(cancel context.CancelCauseFunc) (stop func()) {
	var stops []func() bool
	for _, r := range c.queueRuns {
		stops = append(stops, context.AfterFunc(r.endedCtx, func() { cancel(context.Cause(r.endedCtx)) }))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// A queueRun moves the requests of a queue into the frontier. The queue ends when all of its requests
// are done, and then a callback's AddRequest blocks. So one request is not done before the crawl is
// idle: its consumer is held.
type queueRun struct {
	collector *Collector
	queue     interface{ Run(*colly.Collector) error }
	threads   int          // of a *queue.Queue; 0: unknown
	seedsLeft atomic.Int64 // requests that were in the queue at its start
	knowsSize bool         // seedsLeft was known at the start
	isStarted bool

	held     chan struct{}           // gets a value when a consumer is held
	endedCtx context.Context         // done when the queue has ended; its cause says why
	end      context.CancelCauseFunc // of endedCtx

	mu         sync.Mutex    // guards unhold, isDraining, received and crawled
	unhold     chan struct{} // closed to let the held consumer continue; nil: none is held
	isDraining bool          // no consumer is held any more
	received   int           // requests that the queue has added to the frontier
	crawled    int           // received when the crawl last began to run
}

func newQueueRun(c *Collector, q interface{ Run(*colly.Collector) error }) *queueRun {
	r := &queueRun{collector: c, queue: q, held: make(chan struct{}, 1)}
	r.endedCtx, r.end = context.WithCancelCause(context.Background())
	if q, ok := q.(*queue.Queue); ok {
		r.threads = q.Threads
	}
	return r
}

// isEmpty reports whether the queue is known to be empty.
func (r *queueRun) isEmpty() bool {
	q, ok := r.queue.(interface{ IsEmpty() bool })
	return ok && q.IsEmpty()
}

// errQueueStopped is the error of a run whose queue was stopped.
var errQueueStopped = errors.New("collyfetch: the queue was stopped before the crawl was over")

// errQueueDone is the cause of endedCtx if the queue has ended without an error.
var errQueueDone = errors.New("the queue has ended")

// start starts the queue with a collector of its own, whose requests go to receive. The number of
// requests that it has now says how many of them are seeds. If it is unknown, seeds are those that
// come before the first page is requested.
func (r *queueRun) start() {
	r.isStarted = true
	r.seedsLeft.Store(math.MaxInt64)
	if q, ok := r.queue.(interface{ Size() (int, error) }); ok {
		if size, err := q.Size(); err == nil {
			r.seedsLeft.Store(int64(size))
			r.knowsSize = true
		}
	}
	c := r.collector.Collector.Clone()
	c.Async = false // a consumer is held until Do returns
	c.OnRequest(r.receive)
	go func() {
		err := r.runQueue(c)
		if r.release() { // the queue did not wait for its request
			err = cmp.Or(err, errQueueStopped)
		}
		if err != nil {
			r.collector.Log.Error("a queue has ended early: from now on, a callback blocks if it calls AddRequest. "+
				"To end a crawl early, cancel the context of RunQueue", "why", err)
		}
		r.end(cmp.Or(err, errQueueDone))
	}()
}

// runQueue is queue.Run with one more consumer, for the one that is held. It returns a panic as an
// error.
func (r *queueRun) runQueue(c *colly.Collector) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("collyfetch: the queue panicked: %v", p)
		}
	}()
	if q, ok := r.queue.(*queue.Queue); ok {
		q.Threads++
		defer func() { q.Threads-- }()
	}
	err = r.queue.Run(c)
	if q, ok := r.queue.(interface{ Stop() }); ok {
		q.Stop() // otherwise another Run of a queue.Queue panics
	}
	return err
}

// receive is the callback for the requests of the queue. It adds each to the frontier, and holds the
// consumer that made the request if no other is held.
func (r *queueRun) receive(req *colly.Request) {
	req.Abort()
	c := r.collector
	if err := c.enqueueRequest(c.joinedCollectors[""], req, r.isSeed(req)); err != nil {
		c.Log.Error("a request of a queue is refused", "url", req.URL, "why", err) // the queue ignores errors
		return
	}
	r.mu.Lock()
	r.received++
	if r.unhold != nil || r.isDraining {
		r.mu.Unlock()
		return
	}
	unhold := make(chan struct{})
	r.unhold = unhold
	r.mu.Unlock()
	r.held <- struct{}{}
	<-unhold
}

// isSeed reports whether req, which has just left the queue, is a seed. It counts req.
func (r *queueRun) isSeed(req *colly.Request) bool {
	isLeft := r.seedsLeft.Add(-1) >= 0
	// Request.New gives a request the Ctx of the page on which a callback made it.
	return isLeft && req.Ctx.GetAny(leaseTokenHeader) == nil && (r.knowsSize || !r.collector.hasRequestedPage.Load())
}

// release lets the held consumer continue, and reports whether there was one.
func (r *queueRun) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.releaseLocked()
}

// releaseIfIdle is release after the crawl has run, unless it may have ended before it saw the last
// request of the queue.
func (r *queueRun) releaseIfIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.received == r.crawled {
		r.releaseLocked()
	}
}

func (r *queueRun) releaseLocked() bool {
	if r.unhold == nil {
		return false
	}
	close(r.unhold)
	r.unhold = nil
	select {
	case <-r.held:
	default: // nothing has waited for it
	}
	return true
}

// wait starts the queue if it has not been started, and waits until a consumer is held or the queue
// has ended. It returns the error of a queue that has ended.
func (r *queueRun) wait(ctx context.Context) (isHeld bool, err error) {
	if !r.isStarted {
		r.start()
	}
	select {
	case <-r.endedCtx.Done():
	case <-r.held:
		r.held <- struct{}{} // until it is released
		r.mu.Lock()
		r.crawled = r.received
		r.mu.Unlock()
	case <-ctx.Done():
		return false, nil // pullFromQueues returns its cause
	}
	err = context.Cause(r.endedCtx)
	if errors.Is(err, errQueueDone) {
		return false, nil
	}
	return err == nil, err
}

// drain moves what is left in the queue into the frontier, and returns when the queue has ended.
func (r *queueRun) drain() {
	if !r.isStarted {
		return
	}
	r.mu.Lock()
	r.isDraining = true
	r.mu.Unlock()
	r.release()
	<-r.endedCtx.Done()
}

// errUseRunQueue is why a request of a queue is refused.
var errUseRunQueue = errors.New("Queue.Run does not crawl, and its AddRequest would block callbacks: use " +
	"Crawl.RunQueue(ctx, queue) in place of queue.Run(collector)")

// isOfQueueRun reports whether Queue.Run makes r, a request of m, and logs it. If m is Async, r comes from
// another goroutine than the queue's: then a request that UnmarshalRequest made is only logged.
func (c *Collector) isOfQueueRun(m *joinedCollyCollector, r *colly.Request) bool {
	body, ok := r.Body.(*bytes.Reader) // of UnmarshalRequest; other requests need no search of the stack
	if !ok || callbackRunFromContext(r.Ctx) != nil {
		return false
	}
	if isCalledByQueue() {
		c.warnings.logQueueRun(c, "the requests of a queue are refused", r)
		return true
	}
	if m.Async && body.Len() == 0 && r.Method == http.MethodGet {
		c.warnings.logQueueRun(c, "a queue seems to run, and a callback that adds to it would block", r)
	}
	return false
}

// isCalledByQueue reports whether a queue.Queue makes the request whose callbacks this goroutine runs.
// The request itself does not show it.
func isCalledByQueue() bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "github.com/gocolly/colly/v2/queue.") {
			return true
		}
		if !more {
			return false
		}
	}
}
