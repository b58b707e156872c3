// Package plaintext makes untrusted text fit for a terminal, a log or an error: it replaces control
// characters (ReplaceControlChars) and shortens values (TruncateQuotedValues). It also reads lines of
// bounded length (ReadLine), formats numbers of bytes (FormatBytes) and quotes words of command lines
// (ShellQuote).
//
// The package starts no goroutine and has no lock.
package plaintext
