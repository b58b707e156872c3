// Package inspectcmd implements the commands that inspect a crawl and print the answers as text or
// JSON: decorum report, explain, frontier stats, frontier list, ledger verify and ledger show. It
// decides flags, tables and exit codes. An api.Inspector, which package crawlaccess finds, computes
// the answers. No command here changes a crawl; explain --fetch is the only one that sends requests.
//
// Begin reading at NewReportCommand in report.go. Package cli calls the New functions.
//
// The only goroutine is that of command.Env.WithSignalCancel. The package has no locks.
package inspectcmd
