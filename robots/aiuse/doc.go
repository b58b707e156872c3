// Package aiuse reads what a site asks of the use of its content, such as the training of
// models, and says whether the purposes of a crawl conflict with it.
//
// Begin reading at Signal, which is one preference, and Signals.ConflictWithPurposes.
// Signals come from a robots.txt (Compile), from the header of an answer (HeaderSignals),
// from a tdmrep.json (ParseTDMRep) and from directives to robots (NewDirectiveSignal). Check
// judges a URL by the rules of a robots.txt and by these signals.
//
// Package gate calls Check; the crawler and its outputs call the rest. The package makes no
// request, starts no goroutine and has no locks: what it compiles does not change.
package aiuse
