// Package inspectcmd is the commands that read a stopped crawl and write what they find as
// text or JSON: decorum report, explain, frontier stats, frontier list, and ledger verify
// and show. Package inspect makes the reports; here are flags, tables and exit codes.
//
// Begin reading at NewReportCommand in report.go. Package cli calls it. It starts no
// goroutine but that of command.Env.WithSignalCancel, and has no locks.
package inspectcmd
