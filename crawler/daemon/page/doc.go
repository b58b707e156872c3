// Package page is what a daemon looks like in a browser: its projects, their hosts
// and what robots.txt says of them, as HTML over an api.Daemon.
//
// The server renders all of it. Every action is a form that works without
// JavaScript; the little there is of it fetches the page again and puts what has
// changed in place, so that there is one renderer. Nothing is inline and nothing
// comes from elsewhere: the page works under "default-src 'self'". Names of hosts,
// URLs and robots.txt files are written by strangers: all of them are escaped, and
// bounded in what is shown.
package page
