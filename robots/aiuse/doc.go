// Package aiuse reads a site's preferences about the use of its content, such as the training of
// models, and decides whether the purposes of a crawl conflict with them.
//
// A Signal is one preference. Signals come from a robots.txt (Compile), from the header of an answer
// (HeaderSignals), from a tdmrep.json (ParseTDMRep) and from directives to robots
// (NewDirectiveSignal). Check returns the verdict about a URL by the rules and the preferences of a
// robots.txt:
//
//	rules, usage := file.RulesFor(agent), aiuse.Compile(file, agent)
//	verdict := aiuse.Check(rules, usage, u, []string{"ai-train"})
//
// Begin reading at Signal in signals.go and Signals.ConflictWithPurposes in purpose.go. Package gate
// calls Check; the crawler and its outputs call the rest. The package makes no request, starts no
// goroutine and holds no lock. Rules and TDMReps are immutable.
package aiuse
