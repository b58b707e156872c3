package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum/bench/internal/table"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A countPair is one figure, as counted by the daemon and by the servers.
type countPair struct {
	name                     string
	daemonCount, serverCount float64
	tolerance                float64 // maximum difference that brakes can have caused
}

// isWithinTolerance reports whether both counts agree.
func (c countPair) isWithinTolerance() bool {
	return math.Abs(c.daemonCount-c.serverCount) <= c.tolerance
}

// A serverCounts has the servers' counts of one kind, by word, such as a status class. uncertain
// has the part of each that the daemon may have counted otherwise because of a brake.
type serverCounts struct{ totals, uncertain map[string]float64 }

// addCount adds n to the count of a word.
func (t *serverCounts) addCount(word string, n float64, uncertain bool) {
	if t.totals == nil {
		t.totals, t.uncertain = map[string]float64{}, map[string]float64{}
	}
	t.totals[word] += n
	if uncertain {
		t.uncertain[word] += n
	}
}

// pairWithDaemonCounts returns the pairs of all words that the daemon or the servers have counted.
// kind begins their names.
func (t *serverCounts) pairWithDaemonCounts(kind string, daemon map[string]float64) (all []countPair) {
	words := maps.Clone(daemon)
	maps.Copy(words, t.totals)
	for _, word := range slices.Sorted(maps.Keys(words)) {
		all = append(all, countPair{kind + word, daemon[word], t.totals[word], t.uncertain[word]})
	}
	return all
}

// collectCountPairs returns the daemon's counts in n beside the counts from the web's log.
func collectCountPairs(n metricFamilies, log []crawltest.Exchange, o *operator) []countPair {
	var classes, robotsFetches, bytes serverCounts
	for _, x := range log {
		cut := o.mayHaveBeenCutByBrake(x)
		classes.addCount(statusClass(x), 1, cut)
		if cut && statusClass(x) != "none" {
			classes.uncertain["none"]++ // the daemon may not have received the response
		}
		if strings.HasSuffix(x.URL, "/robots.txt") {
			robotsFetches.addCount(robotsFetchOutcome(x), 1, cut)
		}
		bytes.addCount("", float64(decodedBodyLength(x)), cut)
	}
	// A brake may have cut requests before they reached a server.
	unseen := o.maxRequestsCutByBrakes(n.sumSeries("decorum_visits_total") - float64(len(log)))
	classes.addCount("none", 0, false)
	classes.uncertain["none"] += unseen
	all := []countPair{{"requests", n.sumSeries("decorum_visits_total"), float64(len(log)), unseen}}
	all = append(all, classes.pairWithDaemonCounts("answers ", n.sumByLabel("decorum_visits_total", "status_class"))...)
	all = append(all, robotsFetches.pairWithDaemonCounts("robots.txt: ",
		n.sumByLabel("decorum_robots_fetch_total", "outcome"))...)
	return append(all, bytes.pairWithDaemonCounts("bytes of bodies", n.sumByLabel("decorum_bytes_total", ""))...)
}

// statusClass returns the class of a response's status, such as 2xx, or "none" for an incomplete
// response.
func statusClass(x crawltest.Exchange) string {
	if x.Incomplete || x.Status == 0 {
		return "none"
	}
	return strconv.Itoa(x.Status/100) + "xx"
}

// robotsFetchOutcome returns the outcome of a response to a request for a robots.txt.
func robotsFetchOutcome(x crawltest.Exchange) string {
	switch {
	case x.Incomplete || x.Status == 0 || x.Status/100 == 5:
		return "disallow_all"
	case x.Status/100 == 4:
		return "allow_all"
	}
	return "rules"
}

// decodedBodyLength returns the length of a response's body after decompression, or 0 if the
// response is incomplete.
func decodedBodyLength(x crawltest.Exchange) int {
	switch {
	case statusClass(x) == "none":
		return 0
	case x.Status/100 != 2:
		return int(x.BodyBytes)
	}
	u, err := url.Parse(x.URL)
	if err != nil {
		return int(x.BodyBytes)
	}
	host, page, ok := parsePageURL(u)
	if !ok {
		return int(x.BodyBytes)
	}
	return len(pageHTML(host, page))
}

// parsePageURL returns the host and the page of a URL, and whether it is the URL of a page.
func parsePageURL(u *url.URL) (host, page int, ok bool) {
	_, err := fmt.Sscanf(u.Host, "www.site-%d.example", &host)
	page, ok = pageNumber(u.Path)
	return host, page, ok && err == nil
}

// hostOf returns the host of a URL in the log.
func hostOf(x string) string {
	_, rest, _ := strings.Cut(x, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// checkCountPairs prints the pairs, and returns an error if the counts of a pair differ by more
// than its tolerance.
func checkCountPairs(out io.Writer, all []countPair) error {
	t := table.New(out, "", "daemon", "servers", "")
	wrong := 0
	for _, c := range all {
		verdict := "equal"
		switch {
		case !c.isWithinTolerance():
			verdict = fmt.Sprintf("%+.0f", c.daemonCount-c.serverCount)
			wrong++
		case c.daemonCount != c.serverCount:
			verdict = fmt.Sprintf("%+.0f, cut by a brake", c.daemonCount-c.serverCount)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%s\t\n", c.name, c.daemonCount, c.serverCount, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d counts of the daemon differ from the servers'", wrong)
	}
	return nil
}
