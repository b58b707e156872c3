// Package crawltest provides a web for tests of crawlers, and a judge of the crawlers.
//
// A Web is a set of Sites and a log of every request to them. As an http.RoundTripper it runs
// inside testing/synctest bubbles: it opens no socket, waits by the bubble's clock, and starts no
// goroutine except a context.AfterFunc that records the end of a canceled request. As an
// http.Handler, and on a real socket after Start, it serves all hosts on one port and its faults
// are real: connections are reset, bodies end early, answers never come.
//
// The judge (Web.Judge) reads the log and reports where a crawler broke a rule. It decides this
// independently of the crawler: the author of a site states in Go, next to the text of its
// robots.txt, what the file means (RobotsSpec). This package never parses robots.txt, and never
// computes a delay with the crawler's code.
//
//	web := crawltest.New(crawltest.Site{Host: "shop.example", Robots: crawltest.StaticRobots(spec)})
//	crawl(&http.Client{Transport: web})
//	if report := web.Judge(crawltest.JudgeOptions{}); !report.OK() {
//		t.Errorf("the crawler broke rules:\n%s", report)
//	}
//
// DemoWeb returns a web of small sites with most of what makes crawling hard. ApplicationSites returns
// sites that behave as kinds of real web applications do, each with the visits that it should cost.
//
// Begin reading at Web and Site in web.go, then at JudgeLog in judge.go, which lists the rules.
// rules_in_force.go decides which robots.txt a crawler could know, and judge_delay.go which delay
// it owed.
//
// A Server runs an accept loop and a goroutine for each connection; Close waits for all of them.
// exchangeLog.mu and openConnections.mu are never held together.
package crawltest
