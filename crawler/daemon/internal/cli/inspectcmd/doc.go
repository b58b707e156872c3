// Package inspectcmd is the commands that ask about a crawl and write the answers as text or
// JSON: decorum report, explain, frontier stats, frontier list, and ledger verify and show.
// An api.Inspector answers, which package crawlaccess finds; here are flags, tables and exit
// codes.
//
// Begin reading at NewReportCommand in report.go. Package cli calls it. It starts no
// goroutine but that of command.Env.WithSignalCancel, and has no locks.
package inspectcmd
