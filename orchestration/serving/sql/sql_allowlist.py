"""The allow-list of the SQL guard: classes of Spark's parsed plans, and functions. Everything else is refused.

Left out on purpose: functions that call Java or open files (reflect, java_method, XML with its schemas and entities, Avro and Protobuf
descriptors, input_file_name) or show the host and the user; commands of any kind.
"""

NODES = frozenset(
    f"{package}.{name}"
    for package, names in {
        "plans.logical": "Project Filter Aggregate Join Sort Union Except Intersect Distinct Generate GlobalLimit LocalLimit Offset Sample"
        " LateralJoin Pivot Unpivot SubqueryAlias UnresolvedHint UnresolvedWith WithWindowDefinition"
        " OneRowRelation RepartitionByExpression",
        "analysis": "UnresolvedRelation UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator"
        " UnresolvedHaving UnresolvedQualify UnresolvedOrdinal UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedStarWithColumns"
        " UnresolvedStarWithColumnsRenames UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction"
        " UnresolvedInlineTable"
        " MultiAlias UnresolvedTranspose UnresolvedRegex UnresolvedPipeAggregateOrdinal UnresolvedWithinGroup",
        "expressions": "Alias Literal AttributeReference SortOrder Cast CaseWhen If Coalesce Concat CreateNamedStruct CreateArray CreateMap"
        " Add Subtract Multiply Divide IntegralDivide Remainder UnaryMinus UnaryPositive BitwiseAnd BitwiseOr BitwiseXor BitwiseNot"
        " ShiftLeft ShiftRight ShiftRightUnsigned And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan"
        " GreaterThanOrEqual IsNull IsNotNull IsNaN In InSubquery Between Like ILike RLike LikeAll NotLikeAll LikeAny NotLikeAny"
        " Exists ListQuery ScalarSubquery LateralSubquery LambdaFunction UnresolvedNamedLambdaVariable WindowExpression"
        " UnresolvedWindowExpression WindowSpecDefinition WindowSpecReference SpecifiedWindowFrame Cube Rollup GroupingSets"
        " TimestampDiff TimestampAdd Overlay Substring StringLocate StringTrim StringTrimLeft StringTrimRight"
        " Extract SemiStructuredExtract GetStructField GetArrayItem PipeExpression PipeOperator MakeInterval Collate UnresolvedCollation"
        " CurrentDate CurrentTimestamp Now LocalTimestamp",
        "expressions.variant": "VariantGet",
        "expressions.aggregate": "AggregateExpression AnyValue First Last Count Sum Average Max Min CollectList CollectSet PercentileCont"
        " PercentileDisc ListAgg Mode ApproximatePercentile Percentile",
    }.items()
    for name in names.split()
)

VALUE_CLASSES = frozenset(
    {
        *("AliasIdentifier", "FunctionIdentifier", "plans.logical.JoinHint", "plans.logical.LocalRelation"),
        *("java.util.UUID", "scala.Enumeration$Val", "org.apache.spark.sql.util.CaseInsensitiveStringMap"),
        *(f"plans.{kind}" for kind in ("Inner$", "Cross$", "FullOuter$", "LeftOuter$", "RightOuter$", "LeftSemi$", "LeftAnti$")),
        *("plans.NaturalJoin", "plans.UsingJoin", "plans.logical.SampleMethod$Bernoulli$", "plans.logical.SampleMethod$System$"),
        *(f"expressions.{kind}" for kind in ("Ascending$", "Descending$", "NullsFirst$", "NullsLast$", "UnspecifiedFrame$", "RowFrame$")),
        *(f"expressions.{kind}" for kind in ("RangeFrame$", "CurrentRow$", "UnboundedPreceding$", "UnboundedFollowing$", "ExprId")),
        *("expressions.NumericEvalContext", "expressions.aggregate.Complete$"),
    }
)
"""Classes that the guard does not descend into: they hold names, flags and constants only."""

GENERATORS = frozenset(
    {
        *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple"),
        *("variant_explode", "variant_explode_outer"),
    }
)

TABLE_FUNCTIONS = GENERATORS | {"range"}

SCALAR_AND_AGGREGATE = """
    abs acos acosh add_months aggregate and any any_value approx_count_distinct approx_percentile approx_top_k array array_agg array_append
    array_compact array_contains array_distinct array_except array_insert array_intersect array_join array_max array_min array_position
    array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh
    avg base64 between bigint bin binary bit_and bit_count bit_get bit_length bit_or bit_xor bool_and bool_or boolean bround btrim
    cardinality case cast cbrt ceil ceiling char char_length character_length chr coalesce collate collation collect_list collect_set
    concat concat_ws contains conv convert_timezone corr cos cosh cot count count_if covar_pop covar_samp crc32 csc cume_dist curdate
    current_date current_time current_timestamp current_timezone date date_add date_diff date_format date_from_unix_date date_part date_sub
    date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees dense_rank div double e
    element_at elt encode endswith equal_null every exists exp expm1 extract factorial filter find_in_set first first_value flatten float
    floor forall format_number format_string from_csv from_json from_unixtime from_utc_timestamp get get_json_object getbit greatest
    grouping grouping_id hash hex histogram_numeric hour hypot if ifnull ilike in initcap instr int is_valid_utf8 is_valid_variant
    is_variant_null isnan isnotnull isnull json_array_length json_object_keys kurtosis lag last last_day last_value lcase lead least left
    len length levenshtein like listagg ln localtimestamp locate log log10 log1p log2 lower lpad ltrim luhn_check make_date
    make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map
    map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask max max_by
    md5 mean median min min_by minute mod mode monotonically_increasing_id month monthname months_between named_struct nanvl negative
    next_day not now nth_value ntile nullif nullifzero nvl nvl2 octet_length or overlay parse_json parse_url percent_rank percentile
    percentile_approx percentile_cont percentile_disc pi pmod position positive pow power printf quarter radians rand randn random randstr
    rank reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike round
    row_number rpad rtrim schema_of_csv schema_of_json schema_of_variant schema_of_variant_agg sec second sentences sequence
    session_window sha sha1 sha2 shiftleft shiftright shiftrightunsigned shuffle sign signum sin sinh size skewness slice smallint some
    sort_array soundex space split split_part sqrt startswith std stddev stddev_pop stddev_samp str_to_map string string_agg struct substr
    substring substring_index sum tan tanh time time_bucket time_diff time_trunc timestamp timestamp_micros timestamp_millis
    timestamp_seconds tinyint to_binary to_char to_csv to_date to_json to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp to_varchar to_variant_object transform transform_keys transform_values translate trim trunc try_add
    try_avg try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_mod
    try_multiply try_parse_json try_parse_url try_subtract try_sum try_to_binary try_to_date try_to_number try_to_time try_to_timestamp
    try_url_decode try_variant_get typeof ucase unbase64 unhex uniform unix_date unix_micros unix_millis unix_seconds unix_timestamp upper
    url_decode url_encode uuid validate_utf8 var_pop var_samp variance variant_get weekday weekofyear when width_bucket window window_time
    xxhash64 year zeroifnull zip_with ! % & * + - / < << <= <=> <> = == > >= >> >>> ^ | || ~ !=
"""
FUNCTIONS = GENERATORS | frozenset(SCALAR_AND_AGGREGATE.split())
