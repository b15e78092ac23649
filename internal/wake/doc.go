// Package wake lets calls wait for something to become available.
//
// Owns: the waiting calls, by key and by the class of those who take from each
// other.
//
// May: wake too many or, when it is restarted, none: losing a wake-up only
// delays.
//
// May not: know what a key or a class means; decide anything.
//
// Start reading at: hub.go.
package wake
