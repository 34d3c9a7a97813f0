# RPostgreSQL, DBI and dbplyr over a lake. Rscript steps.R URL
suppressMessages({ library(DBI); library(dplyr, warn.conflicts = FALSE) })
parts <- regmatches(commandArgs(TRUE), regexec("^postgresql://(.+):(.+)@(.+):(.+)/([^?]+)", commandArgs(TRUE)))[[1]]
lake <- dbConnect(RPostgreSQL::PostgreSQL(), user = parts[2], password = parts[3], host = parts[4], port = as.integer(parts[5]), dbname = parts[6])
total <- dbGetQuery(lake, "select count(*) as n from gold.aggregates")$n
stopifnot("aggregates" %in% dbListTables(lake), dbExistsTable(lake, c("gold", "aggregates")), nrow(dbReadTable(lake, c("gold", "aggregates"))) == total)
answer <- dbSendQuery(lake, "select device_id, value from gold.aggregates")
rows <- 0
while (!dbHasCompleted(answer)) rows <- rows + nrow(dbFetch(answer, 1000))
invisible(dbClearResult(answer))
stopifnot(rows == total)
table <- tbl(lake, dbplyr::in_schema("gold", "aggregates"))
means <- table %>% filter(value > 0) %>% group_by(device_id, metric) %>% summarise(mean = mean(value, na.rm = TRUE), median = median(value, na.rm = TRUE), n = n(), .groups = "drop") %>% collect()
stopifnot(nrow(means) > 1, all(means$n > 0))
hourly <- table %>% mutate(hour = date_trunc("hour", window_start)) %>% count(hour) %>% arrange(hour) %>% head(5) %>% collect()
stopifnot(nrow(hourly) > 0)
stopifnot(inherits(try(compute(table), silent = TRUE), "try-error"))
cat("tables, all rows in parts, dplyr; compute() refused\n")
