/* What entry.c has for Go. */
typedef struct {
	int recoverable; /* tf_recoverable's */
	char text[2044]; /* tf_error's */
} tf_failure;

/* tf_failure_of_thread is this thread's last failure; NULL: there is no memory. */
__attribute__((visibility("hidden"))) tf_failure *tf_failure_of_thread(void);

/* tf_last_caller is the return address of the last call of a function of tierflow.h; NULL: none. */
__attribute__((visibility("hidden"))) void *tf_last_caller(void);
