// Package ftpfetch fetches ftp URLs: robots.txt, files and directories, by
// anonymous login (RFC 959, RFC 1635, LOC-14).
//
// Fetcher answers as a Fetcher of http does, so that robots.txt, pace, output and
// callbacks need not know of ftp. What the server says becomes the status that
// means the same:
//
//	200  a file, or the listing of a directory, whose URL ends in a slash
//	301  a directory whose URL does not
//	304  a file that has not been modified since the last visit (MDTM)
//	404  not there: 550, 551 or 553 to RETR or CWD
//	503  the server has no room: 421
//
// Whatever else it says is no answer, but an error with its words: a login that
// is refused (530) among them. So a robots.txt that the server does not have
// allows all, and one that it does not give away for another reason allows
// nothing.
//
// A directory becomes a page of HTML with a link to each of its entries; it has
// their names and nothing else, so that it changes when they do.
//
// Each visit has a control connection of its own, which it closes. Data
// connections are passive and lead nowhere but to the address of the control
// connection, whatever the server says.
package ftpfetch
